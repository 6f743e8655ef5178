package client

import "time"

// This file contains the reports of a client for operators and metrics.

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
)

func (l Loss) String() string {
	return [...]string{"unknown", "lease", "overdue", "forced", "expired", "restarted", "stopped", "resumed"}[l&7]
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

// News describes the changes of a client in a turn.
type News struct {
	Before, After Status
	// the round-trip times of the acknowledged renewals; valid until Config.Watch returns
	Renewed    []time.Duration
	Unanswered int // renewals that were not answered before their attachment ended
}

type tally struct {
	renewed    []time.Duration
	unanswered int
	ended      SessionEnd
}

// talliesKept bounds the slice if takeRenewals is never called.
const talliesKept = 64

func (t *tally) answered(after time.Duration) {
	if len(t.renewed) < talliesKept {
		t.renewed = append(t.renewed, after)
	}
}

// takeRenewals returns the results of renewals since the last call. The slice is valid until the
// next input.
func (c *Core) takeRenewals() (answered []time.Duration, unanswered int) {
	answered, unanswered = c.tally.renewed, c.tally.unanswered
	c.tally.renewed, c.tally.unanswered = c.tally.renewed[:0], 0
	return answered, unanswered
}

// differs compares s with an earlier status, and reports whether to call Config.Watch. It
// ignores counts and deadlines, because they change too often.
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
		c.config.Watch(&News{Before: c.counted(before), After: c.counted(after), Renewed: renewed, Unanswered: unanswered})
	}
}
