package mortise

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/purpose"
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
	// unlocked. The lock stays held until the session or Request.MaxHold ends. The garbage
	// collector finds the leak, perhaps minutes later or never, and the next renewal of a lease
	// reports it. A lock whose Lock.Context has not ended is not leaked. This hook costs eight
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
	Try  bool   // Request.Try
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
	Session string // ID of the session, in the form that Peek reports
	Own     bool   // the session is one of NewSession
	Term    uint64
	Took    time.Duration
	Left    time.Duration
}

func lockEvent(e *trace.Event) LockEvent {
	l := LockEvent{
		Part: Part{Key: e.Part.Key, Mode: Mode(e.Part.Mode), Tree: e.Part.Tree}, Try: e.Try, Purpose: e.Purpose,
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
	trace.InDoubt: OutcomeInDoubt, trace.Regained: OutcomeRegained,
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
	a := trace.Asked{Part: d.own(), Try: d.Try}
	if len(d.Also) > 0 {
		a.Also = d.Also
	}
	if d.Labels != nil && purpose.Lasting(d.Labels) {
		a.Purpose = d.Labels[purpose.Label]
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
			h.Node(NodeEvent{State: State(e.State), Leader: e.Leader, Session: e.Session, Own: e.Own, Term: e.Term,
				Took: e.Took, Left: e.Left})
		}
	}
	return hooks
}

// State is what a [NodeEvent] reports. Three of the states are those of a lease, in Status.Lease
// too.
type State string

// The states.
const (
	// RenewalAcknowledged is reported for each answer to a renewal of the lease of Session. Took is
	// the round-trip time, including the confirmation by a majority.
	RenewalAcknowledged State = "acknowledged"
	RenewalUnanswered   State = "unanswered" // the leader did not answer a renewal in time

	SessionOpened    State = "opened"    // Session is new: it is the node's, or one of NewSession
	SessionClosed    State = "closed"    // this instance has closed Session
	SessionExpired   State = "expired"   // the group has ended Session
	SessionRestarted State = "restarted" // Session has ended because this instance began a new incarnation
	SessionStopped   State = "stopped"   // the node was closed, and Session will expire

	LeaseSafe State = "safe" // neither LeaseJeopardy nor LeaseLost; Left is the time that remains
	// two thirds of the TTL have passed since the last acknowledged renewal; Left is as for LeaseSafe
	LeaseJeopardy State = "jeopardy"
	LeaseLost     State = "lost" // there is no lease, or it has ended, so no lock is held

	// LeaderNew means that this instance has learned of another Leader, or of the same in a new Term.
	// Term is zero on an instance that does not vote.
	LeaderNew   State = "new"
	LeaderNone  State = "none"  // no leader is known
	LeaderAgain State = "again" // the previous Leader is found again, in Term

	// NodeAvailable means that this instance can get locks: its session is attached to a leader, its
	// lease is not lost and the group is past its grace. Took is the duration of the previous state.
	NodeAvailable   State = "available"
	NodeUnavailable State = "unavailable" // it no longer can; Took is as for NodeAvailable
)

// Outcome is how an Acquire or an Unlock ended, or why a hold did.
type Outcome string

// The outcomes, by the hook that reports them. [Event.Cause] is OutcomeReleased, OutcomeExpired,
// OutcomeForced, OutcomeResumed, or OutcomeClosed if the session of the hold was closed.
const (
	OutcomeGranted    Outcome = "granted" // this and the next: Hooks.Acquired
	OutcomeEntered    Outcome = "entered" // the request was covered by a lock that was already held
	OutcomeHeld       Outcome = "held"    // a Try found the lock taken
	OutcomeQueueFull  Outcome = "queue_full"
	OutcomeDeadlock   Outcome = "deadlock"
	OutcomeTimeout    Outcome = "timeout"  // the context's deadline passed
	OutcomeCanceled   Outcome = "canceled" // the context was canceled
	OutcomeNotReady   Outcome = "not_ready"
	OutcomeOverloaded Outcome = "overloaded"
	OutcomeLeaving    Outcome = "leaving"
	OutcomeNotHeld    Outcome = "not_held" // Resume found no such hold
	OutcomeNoRoom     Outcome = "no_room"
	OutcomeBadRequest Outcome = "bad_request"
	OutcomeFailed     Outcome = "failed" // any other error

	OutcomeClosed    Outcome = "closed"    // Acquired and Unlocked: the node is closed
	OutcomeConfirmed Outcome = "confirmed" // this and the next: Hooks.Unlocked
	OutcomeSoon      Outcome = "soon"      // UnlockSoon
	OutcomeDetached  Outcome = "detached"  // Detach, or Request.MaxHold of one handle
	OutcomeLeft      Outcome = "left"      // other handles of the lock still hold it
	OutcomeLost      Outcome = "lost"      // the lock was no longer held
	// OutcomeUnconfirmed means that the context ended before the confirmation, or that the lock was in
	// doubt and may have been lost.
	OutcomeUnconfirmed Outcome = "unconfirmed"

	// OutcomeInDoubt means that the lease was not renewed in time, and that the lock may be good
	// again. For Acquired, it is the lock under which the request was made.
	OutcomeInDoubt  Outcome = "in_doubt"
	OutcomeRegained Outcome = "regained" // Hooks.InDoubt: the lock is good again

	OutcomeLease   Outcome = "lease"   // this and the next: Hooks.Lost; the lease was not renewed in time
	OutcomeOverdue Outcome = "overdue" // Request.MaxHold
	OutcomeForced  Outcome = "forced"  // ForceUnlock
	OutcomeResumed Outcome = "resumed" // another session resumed it
	// OutcomeExpired means that the group ended the session. In Event.Cause it also means that
	// LockDelay or MaxHold passed, or that a client of an agent is gone.
	OutcomeExpired   Outcome = "expired"
	OutcomeRestarted Outcome = "restarted" // this instance began a new incarnation
	OutcomeStopped   Outcome = "stopped"   // the node was closed
	// the group does not know the hold, or the upgrade has ended with the lock that it belongs to
	OutcomeUnknown  Outcome = "unknown"
	OutcomeReleased Outcome = "released" // only in Event.Cause: by Unlock
)
