package mortise

import (
	"context"
	"time"
)

// Hooks are functions that a node calls when something has happened, for metrics, traces and logs. Every one may be nil. They are read when the
// node starts; Config.Hooks is copied.
//
// Acquired and Unlocked are called by the goroutine that has called Acquire or Unlock, right before that returns; a slow one keeps its caller, and
// nobody else, except that the lock is held already in Acquired. All others are called one at a time, in the order in which things happened, by one
// goroutine of the node that has nothing else to do: a slow one delays the others, and if 1,024 calls wait, more are dropped, which is logged
// and counted in Status.HooksDropped. Between the two kinds there is no order, but that Acquired has returned before Lost and Leaked are
// called for a lock. A panic is logged, and goes no further. Close calls what still waits, and gives up on a hook that has not returned after 5 s.
// A hook may ask for Status; it must not call Close or Leave, and should not lock.
//
// What is better asked than told is not here: how many locks are held and waited for, who is a member or a voter, how much time the lease has
// left, in which share of the time locks could be granted. [Node.Status] says it.
//
// Without hooks, and for what is nil, nothing is measured or allocated.
type Hooks struct {
	// Mark is asked at the beginning of every Acquire, with the context of the call, for up to 64 bytes that travel with the request and come out
	// as BehindMark wherever somebody meets the lock, on whatever instance: so a trace can link to the one that blocked it. What it returns is
	// copied. A mark that is longer, or for which Request.Value and Labels leave no room (about 700 bytes of them do), is left out.
	Mark func(ctx context.Context) []byte

	// Acquired is told the end of every Acquire, Lock, TryLock and so on, granted or not, with the context of the call. What it returns is the Tag
	// of all later events of that lock; nil is fine.
	Acquired func(ctx context.Context, e LockEvent) (tag any)

	// Unlocked is told the end of the first Unlock, UnlockSoon, Detach or Lapse of every handle, with the context of the call (UnlockSoon and Lapse have none, and give
	// context.Background()). OutcomeLost means that the lock was not held any more.
	Unlocked func(ctx context.Context, e LockEvent)

	// Lost is told that a lock ended which was not unlocked; Outcome is the reason.
	Lost func(e LockEvent)

	// Leaked is told that the program has forgotten a lock that it holds: no handle of it is reachable, so nobody can unlock it. It stays held,
	// since nobody knows whether its code still runs, until the session ends or Request.MaxHold. The garbage collector finds it, so it may be
	// told minutes later, or never. A lock whose Lock.Context has not ended is not forgotten. This hook costs eight allocations and a kilobyte a lock; the other three of locks two allocations together.
	Leaked func(e LockEvent)

	// Renewed is called for each answer to a renewal of a session's lease, with StateAcknowledged: Took is
	// the round trip with the confirmation of a majority. It is called with StateUnanswered for each renewal
	// that was given up because the leader did not answer.
	Renewed func(e NodeEvent)

	// Session is called when the node's session, or one of NewSession, begins (StateOpened) and when it
	// ends: StateClosed (in good order), StateExpired (the group has ended it), StateRestarted (this
	// instance began a new life) or StateStopped (the node was closed, and the session runs out).
	Session func(e NodeEvent)

	// Lease is called for each change of a session's lease: StateSafe, StateJeopardy or StateLost, as in
	// Status.Lease, with what is Left.
	Lease func(e NodeEvent)

	// Leader is called with StateNew and the leader's Name when this instance learns of another leader, or
	// of the same one in a new Term; with StateNone when it knows of none; and with StateAgain when it
	// finds the last one again. Only instances that vote know the Term.
	Leader func(e NodeEvent)

	// Member is called with StateJoined or StateLeft, with Name and Instance, as gossip sees it. Not every
	// instance gossips: Node.Members lists all.
	Member func(e NodeEvent)

	// Available is called with StateAvailable or StateUnavailable when this instance begins or ceases to be
	// able to be granted a lock: its session is attached to a leader, its lease is not lost and the group
	// is past its grace. Took is how long the state before has lasted.
	Available func(e NodeEvent)

	// Synced is called after each append to the log on disk, if this instance votes and Config.Dir is set.
	// Took is how long it took to make it durable. State is StateSynced or StateFailed, with Err.
	Synced func(e NodeEvent)
}

// LockEvent is what has become of a lock. Later versions add fields and words.
type LockEvent struct {
	Key     string // of several the first in ascending order
	Keys    int    // how many keys
	Kind    LockKind
	Try     bool    // Request.Try
	Purpose string  // "election", "tick" or "job" if the label mortise.purpose of the request is that, so that waits and holds are long by design
	Outcome Outcome // how the call ended, or why the lock was lost
	Err     error   // what the call returns, or Lock.Err
	Token   Token   // of the grant; 0: there was none
	Where   string  // of Leaked: the function, file and line that has acquired it
	Tag     any     // what Acquired has returned for this lock

	// Took is how long the call took: of Acquired the wait, of Unlocked the way to the confirmation. 0 for others.
	Took time.Duration
	// Held is how long the lock had been held when it was unlocked, lost or found to be forgotten. 0 for Acquired, and for a handle that leaves a lock
	// to others.
	Held time.Duration
	// Behind is who held the lock when the request was decided: what a refused Try met, or what the request began to wait for. nil if nobody
	// held it, or if the request never got so far. Of a request that waits, Waiters counts the request itself. A trace of a wait links to it.
	Behind *HeldError
	// BehindMark is what Hooks.Mark has returned for Behind, on the instance that holds the lock. nil: nothing.
	BehindMark []byte
	// Waiting is how many waited before this request; -1: not known.
	Waiting int
}

// NodeEvent is what has happened to a node. Later versions add fields. What a hook does not name is zero.
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
