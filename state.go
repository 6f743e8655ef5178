package mortise

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
	OutcomeIdle    Outcome = "idle"    // Request.MaxIdle
	OutcomeForced  Outcome = "forced"  // ForceUnlock; in Event.Cause also EndSession
	OutcomeResumed Outcome = "resumed" // another session resumed it
	// OutcomeExpired means that the group ended the session. In Event.Cause it also means that
	// LockDelay, MaxHold or MaxIdle passed, that a client of an agent is gone, or that a later start
	// of the holder's node has shown its end.
	OutcomeExpired   Outcome = "expired"
	OutcomeRestarted Outcome = "restarted" // this instance began a new incarnation
	OutcomeStopped   Outcome = "stopped"   // the node was closed
	// the group does not know the hold, or the upgrade has ended with the lock that it belongs to
	OutcomeUnknown  Outcome = "unknown"
	OutcomeReleased Outcome = "released" // only in Event.Cause: by Unlock
)
