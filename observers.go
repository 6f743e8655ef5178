package mortise

import (
	"context"
	"errors"

	"github.com/mortise-lock/mortise/internal/purpose"
	"github.com/mortise-lock/mortise/internal/trace"
)

// This file puts what is traced of locks into the words of Hooks.

// lockEvent is e for a hook.
func lockEvent(e *trace.Event) LockEvent {
	l := LockEvent{
		Key: e.Key, Keys: e.Keys, Kind: LockKind(e.Kind), Try: e.Try, Purpose: e.Purpose, Outcome: outcome(e), Err: e.Err,
		Token: Token(e.Token), Where: e.Where, Tag: e.Tag, Took: e.Took, Held: e.Held, Waiting: e.Waiting,
	}
	if e.End == trace.Lost {
		l.Err = lossOf(e.Err)
	}
	if e.Behind != nil {
		l.Behind, l.BehindMark = heldError(e.Behind), markOf(e.Behind.Value)
	}
	return l
}

// outcomes are the words for the ends that need no second look.
var outcomes = [...]Outcome{
	trace.Granted: OutcomeGranted, trace.Entered: OutcomeEntered, trace.Confirmed: OutcomeConfirmed,
	trace.Soon: OutcomeSoon, trace.Unconfirmed: OutcomeUnconfirmed, trace.Detached: OutcomeDetached,
	trace.Lapsed: OutcomeLapsed, trace.Left: OutcomeLeft, trace.Gone: OutcomeLost, trace.Stopped: OutcomeClosed,
	trace.Leaked: OutcomeLeaked,
}

// outcome is the word for the end that e tells of.
func outcome(e *trace.Event) Outcome {
	switch e.End {
	case trace.Refused:
		return refusal(e.Err)
	case trace.Lost:
		return Outcome(e.Loss.String())
	}
	return outcomes[e.End]
}

// refusal is the word for the error of an Acquire.
func refusal(err error) Outcome {
	var deadlock *DeadlockError
	if errors.As(err, &deadlock) {
		return OutcomeDeadlock
	}
	for _, known := range [...]struct {
		err  error
		name Outcome
	}{
		{context.DeadlineExceeded, OutcomeTimeout}, {context.Canceled, OutcomeCanceled}, {ErrHeld, OutcomeHeld},
		{ErrQueueFull, OutcomeQueueFull}, {ErrNotReady, OutcomeNotReady}, {ErrOverloaded, OutcomeOverloaded},
		{ErrLeaving, OutcomeLeaving}, {ErrClosed, OutcomeClosed}, {ErrBadRequest, OutcomeBadRequest},
		{ErrBadKey, OutcomeBadRequest}, {ErrNotHeld, OutcomeNotHeld}, {ErrNoRoom, OutcomeNoRoom},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return OutcomeFailed
}

// asked is r in the words of its observers.
func (r *Request) asked() trace.Asked {
	a := trace.Asked{Key: r.first(), Keys: max(len(r.Keys), 1), Kind: string(r.kind()), Try: r.Try}
	if r.Labels != nil && purpose.Lasting(r.Labels) {
		a.Purpose = r.Labels[purpose.Label]
	}
	return a
}

// kind names what r asks for.
func (r *Request) kind() LockKind {
	switch {
	case r.Resume != 0:
		return LockResumed
	case r.Permits != 0 || r.Of != 0:
		return LockPermits
	case r.Shared:
		return LockShared
	case len(r.Keys) > 1:
		return LockSeveral
	}
	return LockExclusive
}

// first is the key by which a lock is called.
func (r *Request) first() string {
	key := r.Key
	for i, k := range r.Keys {
		if i == 0 || k < key {
			key = k
		}
	}
	return key
}
