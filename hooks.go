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

// Hooks are functions that a node calls when something has happened, for metrics, traces and logs.
// Every one may be nil. They are read when the node starts; Config.Hooks is copied.
//
// Acquired and Unlocked are called by the goroutine that has called Acquire or Unlock, right before
// that returns; a slow one keeps its caller, and nobody else, except that the lock is held already
// in Acquired. All others are called one at a time, in the order in which things happened, by one
// goroutine of the node that has nothing else to do: a slow one delays the others, and if 1,024
// calls wait, more are dropped, which is logged and counted in Status.HooksDropped. Between the two
// kinds there is no order, but that Acquired has returned before Lost and Leaked are called for a
// lock. A panic is logged, and goes no further. Close calls what still waits, and gives up on a
// hook that has not returned after 5 s. A hook may ask for Status; it must not call Close or Leave,
// and should not lock.
//
// What is better asked than told is not here: how many locks are held and waited for, who is a
// member or a voter, how much time the lease has left, in which share of the time locks could be
// granted. [Node.Status] says it.
//
// Without hooks, and for what is nil, nothing is measured or allocated.
type Hooks struct {
	// Mark is asked at the beginning of every Acquire, with the context of the call, for up to 64
	// bytes that travel with the request and come out as BehindMark wherever somebody meets the
	// lock, on whatever instance: so a trace can link to the one that blocked it. What it returns
	// is copied. A mark that is longer, or for which Request.Value and Labels leave no room (about
	// 700 bytes of them do), is left out.
	Mark func(ctx context.Context) []byte

	// Acquired is told the end of every Acquire, Lock, TryLock and so on, granted or not, with the
	// context of the call. What it returns is the Tag of all later events of that lock; nil is
	// fine.
	Acquired func(ctx context.Context, e LockEvent) (tag any)

	// Unlocked is told the end of the first Unlock, UnlockSoon, Detach or Lapse of every handle,
	// with the context of the call (UnlockSoon and Lapse have none, and give context.Background()).
	// OutcomeLost means that the lock was not held any more.
	Unlocked func(ctx context.Context, e LockEvent)

	// Lost is told that a lock ended which was not unlocked; Outcome is the reason.
	Lost func(e LockEvent)

	// Leaked is told that the program has forgotten a lock that it holds: no handle of it is
	// reachable, so nobody can unlock it. It stays held, since nobody knows whether its code still
	// runs, until the session ends or Request.MaxHold. The garbage collector finds it, so it may be
	// told minutes later, or never. A lock whose Lock.Context has not ended is not forgotten. This
	// hook costs eight allocations and a kilobyte a lock; the other three of locks two allocations
	// together.
	Leaked func(e LockEvent)

	// Renewed is called for each answer to a renewal of a session's lease, with StateAcknowledged:
	// Took is the round trip with the confirmation of a majority. It is called with StateUnanswered
	// for each renewal that was given up because the leader did not answer.
	Renewed func(e NodeEvent)

	// Session is called when the node's session, or one of NewSession, begins (StateOpened) and
	// when it ends: StateClosed (in good order), StateExpired (the group has ended it),
	// StateRestarted (this instance began a new life) or StateStopped (the node was closed, and the
	// session runs out).
	Session func(e NodeEvent)

	// Lease is called for each change of a session's lease: StateSafe, StateJeopardy or StateLost,
	// as in Status.Lease, with what is Left.
	Lease func(e NodeEvent)

	// Leader is called with StateNew and the leader's Name when this instance learns of another
	// leader, or of the same one in a new Term; with StateNone when it knows of none; and with
	// StateAgain when it finds the last one again. Only instances that vote know the Term.
	Leader func(e NodeEvent)

	// Member is called with StateJoined or StateLeft, with Name and Instance, as gossip sees it.
	// Not every instance gossips: Node.Members lists all.
	Member func(e NodeEvent)

	// Available is called with StateAvailable or StateUnavailable when this instance begins or
	// ceases to be able to be granted a lock: its session is attached to a leader, its lease is not
	// lost and the group is past its grace. Took is how long the state before has lasted.
	Available func(e NodeEvent)

	// Synced is called after each append to the log on disk, if this instance votes and Config.Dir
	// is set. Took is how long it took to make it durable. State is StateSynced or StateFailed,
	// with Err.
	Synced func(e NodeEvent)
}

// LockEvent is what has become of a lock. Later versions add fields and words.
type LockEvent struct {
	Key  string // of several the first in ascending order
	Keys int    // how many keys
	Kind LockKind
	Try  bool // Request.Try
	// "election", "tick" or "job" if the label mortise.purpose of the request is that, so that
	// waits and holds are long by design
	Purpose string
	Outcome Outcome // how the call ended, or why the lock was lost
	Err     error   // what the call returns, or Lock.Err
	Token   Token   // of the grant; 0: there was none
	Where   string  // of Leaked: the function, file and line that has acquired it
	Tag     any     // what Acquired has returned for this lock

	// Took is how long the call took: of Acquired the wait, of Unlocked the way to the
	// confirmation. 0 for others.
	Took time.Duration
	// Held is how long the lock had been held when it was unlocked, lost or found to be forgotten.
	// 0 for Acquired, and for a handle that leaves a lock to others.
	Held time.Duration
	// Behind is who held the lock when the request was decided: what a refused Try met, or what the
	// request began to wait for. nil if nobody held it, or if the request never got so far. Of a
	// request that waits, Waiters counts the request itself. A trace of a wait links to it.
	Behind *HeldError
	// BehindMark is what Hooks.Mark has returned for Behind, on the instance that holds the lock.
	// nil: nothing.
	BehindMark []byte
	// Waiting is how many waited before this request; -1: not known.
	Waiting int
}

// NodeEvent is what has happened to a node. Later versions add fields. What a hook does not name is
// zero.
type NodeEvent struct {
	State    NodeState // see the hook
	Name     string    // of the leader or the member
	Instance string    // ID of the leader or the member
	Session  string    // ID, as Peek has it
	Own      bool      // the session is one of NewSession
	Term     uint64
	Took     time.Duration
	Left     time.Duration
	Err      error
}

// This file puts what is traced of locks into the words of Hooks.

// lockEvent is e for a hook.
func lockEvent(e *trace.Event) LockEvent {
	l := LockEvent{
		Key: e.Key, Keys: e.Keys, Kind: LockKind(e.Kind), Try: e.Try, Purpose: e.Purpose, Outcome: outcome(e),
		Err:   e.Err,
		Token: Token(e.Token), Where: e.Where, Tag: e.Tag, Took: e.Took, Held: e.Held, Waiting: e.Waiting,
	}
	if e.End == trace.Lost {
		l.Err = lossOf(e.Err)
	}
	if e.Behind != nil {
		l.Behind, l.BehindMark = heldError(e.Behind), shown.MarkOf(e.Behind.Value)
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

// lockHooks are the hooks of locks, as the tracer calls them.
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
	if h.Leaked != nil {
		t.Hooks.Leaked = func(e trace.Event) { h.Leaked(lockEvent(&e)) }
	}
	return t
}

// nodeHooks are the hooks of the instance, as the engine calls them.
func nodeHooks(h *Hooks) *instance.Hooks {
	if h == nil {
		return nil
	}
	return &instance.Hooks{
		Renewed: nodeHook(h.Renewed), Session: nodeHook(h.Session), Lease: nodeHook(h.Lease),
		Leader: nodeHook(h.Leader),
		Member: nodeHook(h.Member), Available: nodeHook(h.Available), Synced: nodeHook(h.Synced),
	}
}

func nodeHook(hook func(NodeEvent)) func(instance.NodeEvent) {
	if hook == nil {
		return nil
	}
	return func(e instance.NodeEvent) {
		hook(NodeEvent{
			State: NodeState(e.State), Name: e.Name, Instance: e.Instance, Session: e.Session, Own: e.Own, Term: e.Term,
			Took: e.Took, Left: e.Left, Err: e.Err,
		})
	}
}

// LockKind says what a request of a [LockEvent] asks for.
type LockKind string

// The kinds of requests.
const (
	LockExclusive LockKind = "exclusive"
	LockShared    LockKind = "shared"
	LockPermits   LockKind = "permits" // of a semaphore
	LockSeveral   LockKind = "several" // several keys at once
	LockResumed   LockKind = "resumed" // Request.Resume
)

// Outcome says how an Acquire or an Unlock ended, or why a lock was lost.
type Outcome string

// Outcomes of Hooks.Acquired.
const (
	OutcomeGranted    Outcome = "granted"
	OutcomeEntered    Outcome = "entered" // a lock that was held already, under its context
	OutcomeHeld       Outcome = "held"    // a Try found it taken
	OutcomeQueueFull  Outcome = "queue_full"
	OutcomeDeadlock   Outcome = "deadlock"
	OutcomeTimeout    Outcome = "timeout"  // of the context
	OutcomeCanceled   Outcome = "canceled" // the context
	OutcomeNotReady   Outcome = "not_ready"
	OutcomeOverloaded Outcome = "overloaded"
	OutcomeLeaving    Outcome = "leaving"
	OutcomeNotHeld    Outcome = "not_held" // a Resume
	OutcomeNoRoom     Outcome = "no_room"
	OutcomeBadRequest Outcome = "bad_request"
	OutcomeFailed     Outcome = "failed" // any other error
	OutcomeClosed     Outcome = "closed" // the node is closed; also of Unlocked
)

// NodeState says what a [NodeEvent] reports.
type NodeState string

// The states that the hooks of a node report. Two hooks never use one word.
const (
	StateAcknowledged NodeState = "acknowledged" // Hooks.Renewed
	StateUnanswered   NodeState = "unanswered"

	StateOpened    NodeState = "opened" // Hooks.Session
	StateClosed    NodeState = "closed"
	StateExpired   NodeState = "expired"
	StateRestarted NodeState = "restarted"
	StateStopped   NodeState = "stopped"

	StateSafe     NodeState = "safe" // Hooks.Lease, as LeaseState
	StateJeopardy NodeState = "jeopardy"
	StateLost     NodeState = "lost"

	StateNew   NodeState = "new" // Hooks.Leader
	StateNone  NodeState = "none"
	StateAgain NodeState = "again"

	StateJoined NodeState = "joined" // Hooks.Member
	StateLeft   NodeState = "left"

	StateAvailable   NodeState = "available" // Hooks.Available
	StateUnavailable NodeState = "unavailable"

	StateSynced NodeState = "synced" // Hooks.Synced
	StateFailed NodeState = "failed"
)

// Outcomes of Hooks.Unlocked, beside OutcomeClosed.
const (
	OutcomeConfirmed   Outcome = "confirmed"
	OutcomeSoon        Outcome = "soon"        // UnlockSoon
	OutcomeDetached    Outcome = "detached"    // Detach
	OutcomeLapsed      Outcome = "lapsed"      // Lapse
	OutcomeLeft        Outcome = "left"        // other handles have entered the lock and hold it
	OutcomeLost        Outcome = "lost"        // it was not held any more
	OutcomeUnconfirmed Outcome = "unconfirmed" // the context ended first
)

// Outcomes of Hooks.Lost, and of Hooks.Leaked the last one.
const (
	OutcomeLease     Outcome = "lease"     // it was not renewed in time
	OutcomeOverdue   Outcome = "overdue"   // Request.MaxHold
	OutcomeForced    Outcome = "forced"    // ForceUnlock
	OutcomeResumed   Outcome = "resumed"   // another session has resumed it
	OutcomeExpired   Outcome = "expired"   // the group had ended the session
	OutcomeRestarted Outcome = "restarted" // this instance began a new life
	OutcomeStopped   Outcome = "stopped"   // the node was closed
	OutcomeUnknown   Outcome = "unknown"   // the group does not have it
	OutcomeLeaked    Outcome = "leaked"
)
