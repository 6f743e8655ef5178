package client

import "time"

// This file has what a client reports about itself for people and metrics. No decision depends on
// it.

// Loss is the reason why a hold ended that its caller had not released.
type Loss uint8

// The reasons why a hold is lost.
const (
	LossUnknown   Loss = iota // the group has no such hold, although the session exists
	LossLease                 // no renewal was acknowledged in time
	LossOverdue               // it reached the longest duration that its request allows
	LossForced                // it was ended by force
	LossExpired               // the group reported that the session is over
	LossRestarted             // the instance began a new incarnation
	LossStopped               // the client was closed
	LossTaken                 // another session has resumed the hold by its token
)

func (l Loss) String() string {
	return [...]string{"unknown", "lease", "overdue", "forced", "expired", "restarted", "stopped", "resumed"}[l&7]
}

// SessionEnd is why a session is over for its client.
type SessionEnd uint8

// The ends of a session.
const (
	SessionGoesOn    SessionEnd = iota // or there was none
	SessionClosed                      // by CloseSession
	SessionExpired                     // the group reported that it is over, or that another process attached to it
	SessionRestarted                   // by Rebind; the group was not told
	SessionStopped                     // by Close; the group was not told
)

func (e SessionEnd) String() string {
	return [...]string{"", "closed", "expired", "restarted", "stopped", "", "", ""}[e&7]
}

func (e SessionEnd) loss() Loss {
	return [...]Loss{LossExpired, LossExpired, LossExpired, LossRestarted, LossStopped, LossUnknown, LossUnknown,
		LossUnknown}[e&7]
}

// News describes the changes of a client in one turn.
type News struct {
	Before, After Status
	// the round trip time of each acknowledged renewal; valid until Config.Watch returns
	Renewed    []time.Duration
	Unanswered int // renewals that were not answered before their attachment ended
}

// tally is what a core counts for the news. Its slice is reused.
type tally struct {
	renewed    []time.Duration
	unanswered int
	ended      SessionEnd // how the last session ended
}

// talliesKept bounds the list in case that the shell never reads it.
const talliesKept = 64

func (t *tally) answered(after time.Duration) {
	if len(t.renewed) < talliesKept {
		t.renewed = append(t.renewed, after)
	}
}

// takeRenewals returns the round trip times of answered renewals and the number of unanswered ones
// since the last call. The slice is valid until the next input.
func (c *Core) takeRenewals() (answered []time.Duration, unanswered int) {
	answered, unanswered = c.tally.renewed, c.tally.unanswered
	c.tally.renewed, c.tally.unanswered = c.tally.renewed[:0], 0
	return answered, unanswered
}

// differs reports whether a change is worth reporting. Counts and deadlines change all the time.
func (s *Status) differs(before *Status) bool {
	return s.Phase != before.Phase || s.Session != before.Session || s.Lease != before.Lease ||
		s.GraceUntil != before.GraceUntil || s.Leader != before.Leader
}

func (c *Client) tell(before, after Status) {
	if c.config.Watch == nil {
		return
	}
	renewed, unanswered := c.core.takeRenewals()
	if len(renewed) > 0 || unanswered > 0 || after.differs(&before) {
		c.config.Watch(&News{Before: before, After: after, Renewed: renewed, Unanswered: unanswered})
	}
}
