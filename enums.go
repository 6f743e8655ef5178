package mortise

// This file has the words that Status, Event, LockEvent, NodeEvent and DiskFault carry, each with a
// type of its own, so that a program compares them with constants. In JSON they are strings with these
// values. A later version may add a word: a program has to ignore a word that it does not know.

// Phase says how far an instance has come in its present life. It only goes forward; a new life begins
// at PhaseNewborn.
type Phase string

// The phases of an instance.
const (
	PhaseNewborn Phase = "newborn" // belongs to no group
	PhaseBound   Phase = "bound"   // has accepted the charter of a group that may not be founded yet
	PhaseMember  Phase = "member"  // belongs to a group that is founded
)

// SessionPhase says how far an instance is on its way to a session with the leader.
type SessionPhase string

// The phases of a session, in the order of the way.
const (
	SessionSeeking   SessionPhase = "seeking"   // has no instance to ask at the moment
	SessionOpening   SessionPhase = "opening"   // has asked for a session
	SessionAttaching SessionPhase = "attaching" // has asked the leader to take its session up again
	SessionAttached  SessionPhase = "attached"  // talks to the leader: it can be granted locks
)

// LeaseState says how far the lease of a session is from its end.
type LeaseState string

// The states of a lease.
const (
	LeaseSafe     LeaseState = "safe"     // neither of the two below
	LeaseJeopardy LeaseState = "jeopardy" // two thirds of the TTL have passed since the last renewal that was acknowledged
	LeaseLost     LeaseState = "lost"     // there is none, or its end has passed: nothing is held
)

// Tier is what a secret or certificate makes of the process that has it.
type Tier string

// The tiers.
const (
	TierRoot   Tier = "root"   // the root secret: it may found, vote and serve
	TierMember Tier = "member" // a derived secret with the word member: it locks, and never votes or serves
	TierGuest  Tier = "guest"  // any other derived secret: a program that only takes locks, and no instance
)

// EventKind says what an [Event] is.
type EventKind string

// The kinds of events. The first four happen to a key.
const (
	EventHeld    EventKind = "held"    // a hold began, with Token, by Holder
	EventLeft    EventKind = "left"    // the holder is gone or has detached it, by Cause; it stays for its LockDelay
	EventFreed   EventKind = "freed"   // a hold ended, by Cause
	EventData    EventKind = "data"    // the data of the key is now Data, at Revision, or none if that is empty
	EventReset   EventKind = "reset"   // forget what was reported before: what follows is what there is now
	EventCurrent EventKind = "current" // everything up to Position is reported: what happens in one moment comes before the same one
)

// Cause says why a hold ended, or why its holder is gone.
type Cause string

// The causes.
const (
	CauseReleased Cause = "released" // by Unlock
	CauseExpired  Cause = "expired"  // its session, its LockDelay or its MaxHold ran out, or it lapsed
	CauseClosed   Cause = "closed"   // with its session, when its instance left
	CauseForced   Cause = "forced"   // by ForceUnlock
	CauseResumed  Cause = "resumed"  // it goes on in another session, by Request.Resume
)

// DiskState says what is wrong with a disk.
type DiskState string

// The states of a [DiskFault].
const (
	DiskFailed  DiskState = "failed"  // after an error of the disk
	DiskHung    DiskState = "hung"    // while a call does not return
	DiskRemoved DiskState = "removed" // the directory was removed or replaced below the running instance
	DiskLow     DiskState = "low"     // a warning: less than Config.DirFreeBytes is left
)

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
