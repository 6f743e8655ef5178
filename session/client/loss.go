package client

// Loss is the reason why a hold ended although its caller had not released it.
type Loss uint8

// The reasons why a hold is lost.
const (
	LossUnknown   Loss = iota // the session exists, but the group has no such hold
	LossLease                 // no renewal was acknowledged in time
	LossOverdue               // the hold reached its longest duration
	LossForced                // the hold was ended by force
	LossExpired               // the group reported that the session has ended
	LossRestarted             // the instance began a new incarnation
	LossStopped
	LossTaken // another session has resumed the hold by its token
	LossIdle  // the holder did not beat for as long as its request allows
)

func (l Loss) String() string {
	return [16]string{"unknown", "lease", "overdue", "forced", "expired", "restarted", "stopped", "resumed", "idle"}[l&15]
}

// SessionEnd is the reason why a session has ended for its client.
type SessionEnd uint8

// The reasons why a session ends.
const (
	SessionGoesOn    SessionEnd = iota // the session has not ended, or there was none
	SessionClosed                      // by CloseSession
	SessionExpired                     // the group reported that it ended, or that another process has attached to it
	SessionRestarted                   // Rebind dropped the session, without a message to the group
	SessionStopped                     // Close dropped the session, without a message to the group
)

func (e SessionEnd) String() string {
	return [...]string{"", "closed", "expired", "restarted", "stopped", "", "", ""}[e&7]
}

func (e SessionEnd) loss() Loss {
	return [...]Loss{LossExpired, LossExpired, LossExpired, LossRestarted, LossStopped, LossUnknown, LossUnknown,
		LossUnknown}[e&7]
}
