package mortise

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/internal/trace"
)

// Hooks are functions that a node calls after an event, for metrics, traces and logs. A nil hook
// costs nothing. Start copies Config.Hooks.
//
// Mark, Acquired and Unlocked run on the goroutine that calls Acquire or Unlock, the last two
// directly before the call returns. A slow hook delays only that call. A granted lock is held while
// Acquired runs. One goroutine of the node calls all other hooks, one at a time and in the order of
// the events. If 1,024 calls wait for that goroutine, further calls are dropped, logged, and
// counted in Status.HooksDropped. Acquired returns before Lost, InDoubt or Leaked is called for the
// same lock. Hooks on different goroutines have no other order.
//
// A panic in a hook is recovered and logged. Close runs the calls that wait, but waits at most 5 s
// for a hook to return. A hook may call Status. It must not call Close or Leave, and should not
// lock.
type Hooks struct {
	// Mark is called at the beginning of every Acquire with the context of the call. It returns up
	// to 64 bytes that are copied and stored with the request. An instance that finds the lock
	// taken gets them as LockEvent.BehindMark, so its trace can link to the trace that blocks it. A
	// mark is dropped if it is too long, or if Request.Value and Labels take about 700 bytes or
	// more.
	Mark func(ctx context.Context) []byte

	// Acquired is called at the end of every Acquire, granted or not, with the context of the call.
	// Its result, which may be nil, is the Tag of all later events of that lock.
	Acquired func(ctx context.Context, e LockEvent) (tag any)

	// Unlocked is called at the end of the first Unlock, UnlockSoon or Detach of every handle, with
	// the context of the call (context.Background() for UnlockSoon). OutcomeLost means that the lock
	// was no longer held.
	Unlocked func(ctx context.Context, e LockEvent)

	// Lost is called when a lock has ended before it was unlocked. Outcome is the reason.
	Lost func(e LockEvent)

	// InDoubt is called with OutcomeInDoubt when a lock with Request.JeopardyGrace is in doubt, and
	// with OutcomeRegained when it is good again. A doubt can also end with Lost or Unlocked.
	InDoubt func(e LockEvent)

	// Leaked is called when a lock is held but no handle of it is reachable, so it cannot be
	// unlocked. The lock stays held until the session, Request.MaxHold or MaxIdle ends. The garbage
	// collector finds the leak, perhaps minutes later or never, and the next renewal of a lease
	// reports it. A lock whose Lock.Context has not ended is not leaked. This hook costs twelve
	// allocations and a kilobyte per lock.
	Leaked func(e LockEvent)

	// Node is called for each change of the node's sessions, their leases and the leader, and for each
	// answer to a renewal. See [State].
	Node func(e NodeEvent)

	// Synced is called after each append to the log on disk, if this instance votes and Config.Dir
	// is set. Parameter took is the time until the append was durable or failed with err.
	Synced func(took time.Duration, err error)
}

// LockEvent describes an event of a lock.
type LockEvent struct {
	Part        // Key, Mode and Tree of the request; Exclusive for Resume and Upgrade
	Also []Part // Request.Also; not to be changed
	// Purpose is the value of the label mortise.purpose of the request, if that value is
	// "election", "tick" or "job". The waits and holds of such requests are long by design.
	Purpose string
	Outcome Outcome // how the call ended, or why the lock was lost; empty for Leaked
	Err     error   // the error of the call, or of Lock.Err
	Token   Token   // token of the grant; zero if nothing was granted
	Where   string  // for Leaked: the function, file and line that acquired it
	Tag     any     // the result of Acquired for this lock

	// Took is the duration of the wait for Acquired, and of the call for Unlocked. It is zero for
	// other hooks.
	Took time.Duration
	// Held is how long the lock was held when it was unlocked, lost or found to be leaked. It is
	// zero for Acquired, and while other handles hold the lock.
	Held time.Duration
	// Behind describes the holder at the time when the group decided that a Try fails or that the
	// request waits. It is nil if the lock was free or the group did not decide. If the request
	// waits, Behind.Waiters includes it.
	Behind     *HeldError
	BehindMark []byte // the result of Hooks.Mark for the holder's request; nil if there is none
	Waiting    int    // how many requests waited ahead of this one; -1 if unknown
}

// NodeEvent describes an event of a node. Fields that the comment of its State does not mention are
// zero.
type NodeEvent struct {
	State   State
	Leader  string // Name of the leader
	Session string // ID of the session, in the form that Peek reports; Status.Session is the node's own
	Term    uint64
	Took    time.Duration
	Left    time.Duration
}

func lockEvent(e *trace.Event) LockEvent {
	l := LockEvent{
		Part: Part{Key: e.Part.Key, Mode: Mode(e.Part.Mode), Tree: e.Part.Tree}, Purpose: e.Purpose,
		Outcome: outcome(e), Err: e.Err,
		Token: Token(e.Token), Where: e.Where, Tag: e.Tag, Took: e.Took, Held: e.Held, Waiting: e.Waiting,
	}
	l.Also, _ = e.Also.([]Part)
	if e.End == trace.Lost || e.End == trace.InDoubt {
		l.Err = lossOf(e.Err)
	}
	if e.Behind != nil {
		l.Behind, l.BehindMark = heldError(e.Behind), shown.MarkOf(e.Behind.Value)
	}
	return l
}

var outcomes = [...]Outcome{
	trace.Granted: OutcomeGranted, trace.Entered: OutcomeEntered, trace.Confirmed: OutcomeConfirmed,
	trace.Soon: OutcomeSoon, trace.Unconfirmed: OutcomeUnconfirmed, trace.Detached: OutcomeDetached,
	trace.Left: OutcomeLeft, trace.Gone: OutcomeLost, trace.Stopped: OutcomeClosed,
	trace.InDoubt: OutcomeInDoubt, trace.Regained: OutcomeRegained, trace.Leaked: "",
}

func outcome(e *trace.Event) Outcome {
	switch e.End {
	case trace.Refused:
		return refusal(e.Err)
	case trace.Lost:
		return Outcome(e.Loss.String())
	}
	return outcomes[e.End]
}

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
		{ErrInJeopardy, OutcomeInDoubt},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return OutcomeFailed
}

func (d *demand) asked() trace.Asked {
	a := trace.Asked{Part: d.own()}
	if len(d.Also) > 0 {
		a.Also = slices.Clone(d.Also)
	}
	if d.Labels != nil && shown.Lasting(d.Labels) {
		a.Purpose = d.Labels[shown.PurposeLabel]
	}
	return a
}

func lockHooks(h *Hooks) (t trace.Config) {
	if h == nil {
		return t
	}
	t.Queued, t.Hooks.Mark = true, h.Mark
	if h.Acquired != nil {
		t.Hooks.Acquired = func(ctx context.Context, e trace.Event) any { return h.Acquired(ctx, lockEvent(&e)) }
	}
	if h.Unlocked != nil {
		t.Hooks.Unlocked = func(ctx context.Context, e trace.Event) { h.Unlocked(ctx, lockEvent(&e)) }
	}
	if h.Lost != nil {
		t.Hooks.Lost = func(e trace.Event) { h.Lost(lockEvent(&e)) }
	}
	if h.InDoubt != nil {
		t.Hooks.InDoubt = func(e trace.Event) { h.InDoubt(lockEvent(&e)) }
	}
	if h.Leaked != nil {
		t.Hooks.Leaked = func(e trace.Event) { h.Leaked(lockEvent(&e)) }
	}
	return t
}

func nodeHooks(h *Hooks) *instance.Hooks {
	if h == nil {
		return nil
	}
	hooks := &instance.Hooks{Synced: h.Synced}
	if h.Node != nil {
		hooks.Node = func(e instance.NodeEvent) {
			h.Node(NodeEvent{State: State(e.State), Leader: e.Leader, Session: e.Session, Term: e.Term, Took: e.Took,
				Left: e.Left})
		}
	}
	return hooks
}
