package mortise

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/purpose"
	"github.com/mortise-lock/mortise/session"
)

// This file is where callers of a node with hooks pass: the end of an Acquire, of an Unlock, and the loss of a lock in between.

// hooked is the part of a Lock that only a node with hooks gives it.
type hooked struct {
	lock  *Lock
	mark  []byte    // of Hooks.Mark
	event LockEvent // what is the same in all events of the lock; set before granted
	since clock.Time

	mu      sync.Mutex // guards the rest; never held across a wait
	granted bool       // Acquired has returned
	lost    *LockEvent // it was lost before that

	cleanup *runtime.Cleanup // of a handle, which has nothing else of this; nil: it is not looked after
}

// acquireHooked is Acquire with hooks.
func (n *Node) acquireHooked(ctx context.Context, client *session.Client, r Request) (*Lock, error) {
	w := &hooked{event: LockEvent{Key: r.first(), Keys: max(len(r.Keys), 1), Kind: r.kind(), Try: r.Try}}
	if purpose.Lasting(r.Labels) {
		w.event.Purpose = r.Labels[purpose.Label]
	}
	if h := n.teller.hooks.Mark; h != nil {
		n.teller.call(func() { w.mark = h(ctx) })
	}
	began := n.env.clock.Now()
	l, err := n.acquireIn(ctx, client, r, w)
	now := n.env.clock.Now()
	e := w.event
	e.Err, e.Took, e.Outcome = err, now.Sub(began), OutcomeGranted
	if err != nil {
		e.Outcome = outcome(err)
	}
	switch {
	case l != nil && l.again != nil: // entered: the events of the lock are those of its first handle
		if f := l.first().hooked; f != nil {
			e.Tag = f.event.Tag
		}
		e.Outcome, e.Token = OutcomeEntered, l.Token()
		n.acquired(ctx, e)
		return n.leakable(l), err
	case l != nil:
		e.Token = l.Token()
		w.event.Token, w.since = e.Token, now
	}
	w.met(&e)
	w.event.Behind, w.event.Waiting = e.Behind, e.Waiting
	w.event.Tag = n.acquired(ctx, e)
	if l == nil {
		return nil, err
	}
	w.isGranted()
	return n.leakable(l), nil
}

// acquired calls the hook, if there is one.
func (n *Node) acquired(ctx context.Context, e LockEvent) (tag any) {
	if h := n.teller.hooks.Acquired; h != nil {
		n.teller.call(func() { tag = h(ctx, e) })
	}
	return tag
}

// watch lets w hear of the loss of a lock that is about to be asked for. w may be nil.
func (l *Lock) watch(w *hooked) {
	if w != nil {
		l.hooked, w.lock = w, l
		l.hold.OnLoss(w.isLost)
	}
}

// met says who was in the way.
func (w *hooked) met(e *LockEvent) {
	if w.lock != nil {
		if b := w.lock.hold.Behind(); b != nil {
			e.Behind = heldError(b)
			e.BehindMark = markOf(b.Value)
		}
	}
	switch {
	case e.Outcome == OutcomeHeld:
		e.Waiting = e.Behind.Waiters
	case e.Behind != nil:
		e.Waiting = max(e.Behind.Waiters-1, 0) // it is counted itself
	case e.Err != nil:
		e.Waiting = -1
	}
}

// isGranted opens the way for Lost, and tells what came before.
func (w *hooked) isGranted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.granted = true
	if w.lost != nil {
		w.tellLost(*w.lost)
	}
}

// isLost takes the loss of the hold: of a call that has given up it means nothing.
func (w *hooked) isLost(why session.Loss, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := LockEvent{Outcome: Outcome(why.String()), Err: lossOf(err)}
	if !w.granted {
		w.lost = &e
		return
	}
	w.tellLost(e)
}

func (w *hooked) tellLost(e LockEvent) {
	n := w.lock.node
	if h := n.teller.hooks.Lost; h != nil {
		e = w.about(e, n.env.clock.Now())
		n.teller.later(func() { h(e) })
	}
}

// about adds what is the same in all events of a lock that was held until now.
func (w *hooked) about(e LockEvent, now clock.Time) LockEvent {
	all := w.event
	all.Outcome, all.Err, all.Took, all.Held = e.Outcome, e.Err, e.Took, now.Sub(w.since)
	return all
}

// letting is how a handle is let go of, and for a lapse why.
type letting struct {
	way lettingWay
	why string
}

type lettingWay uint8

const (
	unlocking lettingWay = iota
	unlockingSoon
	detaching
	lapsing
)

// letGo lets go of the lock; left and first are what exit has said.
func (l *Lock) letGo(ctx context.Context, how letting, left, first bool) error {
	f := l.first()
	switch {
	case left:
		return f.leave(first)
	case f.tape != nil && how.way == unlockingSoon:
		return f.unlockSoonRecorded()
	case f.tape != nil && (how.way == detaching || how.way == lapsing):
		return f.detachRecorded(ctx, how)
	case f.tape != nil:
		return f.unlockRecorded(ctx)
	case how.way == unlockingSoon:
		return lossOf(f.hold.ReleaseSoon())
	case how.way == detaching || how.way == lapsing:
		return f.detach(ctx, how)
	}
	return lossOf(f.hold.Release(ctx))
}

// detach lets go of the hold without ending it.
func (l *Lock) detach(ctx context.Context, how letting) error {
	if how.way == lapsing {
		return lossOf(l.hold.Lapse(how.why))
	}
	return lossOf(l.hold.Detach(ctx))
}

// letGoHooked is letGo the first time for a handle, on a node with hooks.
func (l *Lock) letGoHooked(ctx context.Context, how letting, left bool) error {
	f := l.first()
	n, w := f.node, f.hooked
	l.found()
	_ = f.hold.Err() // a loss that nobody has noticed is told before the unlock
	began := n.env.clock.Now()
	err := l.letGo(ctx, how, left, true)
	h := n.teller.hooks.Unlocked
	if h == nil {
		return err
	}
	e := LockEvent{Err: err, Took: n.env.clock.Now().Sub(began), Outcome: [...]Outcome{OutcomeConfirmed, OutcomeSoon, OutcomeDetached, OutcomeLapsed}[how.way]}
	switch {
	case errors.Is(err, ErrLost):
		e.Outcome = OutcomeLost
	case errors.Is(err, ErrClosed):
		e.Outcome = OutcomeClosed
	case errors.Is(err, ErrNoRoom): // a Detach; it has ended, and that is confirmed
		e.Outcome = OutcomeConfirmed
	case err != nil:
		e.Outcome = OutcomeUnconfirmed
	case left:
		e.Outcome = OutcomeLeft
	}
	if e = w.about(e, began); left || e.Outcome == OutcomeLost {
		e.Held = 0
	}
	n.teller.call(func() { h(ctx, e) })
	return err
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

// outcome names the error of an Acquire.
func outcome(err error) Outcome {
	var deadlock *DeadlockError
	if errors.As(err, &deadlock) {
		return OutcomeDeadlock
	}
	for _, known := range [...]struct {
		err  error
		name Outcome
	}{
		{context.DeadlineExceeded, OutcomeTimeout}, {context.Canceled, OutcomeCanceled}, {ErrHeld, OutcomeHeld}, {ErrQueueFull, OutcomeQueueFull}, {ErrNotReady, OutcomeNotReady},
		{ErrOverloaded, OutcomeOverloaded}, {ErrLeaving, OutcomeLeaving}, {ErrClosed, OutcomeClosed}, {ErrBadRequest, OutcomeBadRequest}, {ErrBadKey, OutcomeBadRequest}, {ErrNotHeld, OutcomeNotHeld},
		{ErrNoRoom, OutcomeNoRoom},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return OutcomeFailed
}
