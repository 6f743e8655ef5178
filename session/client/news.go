package client

import "time"

// This file is what a client tells about itself beside the outcomes of its calls, for people and
// for figures. Nothing is decided by it.

// Loss says what ended a hold that its caller had not released.
type Loss uint8

// The reasons for which a hold is lost.
const (
	LossUnknown   Loss = iota // the group knows nothing of it, though the session lives
	LossLease                 // no renewal was acknowledged in time
	LossOverdue               // it had lasted as long as its request allows
	LossForced                // others have ended it
	LossExpired               // the group says that the session is over
	LossRestarted             // the instance began a new life
	LossStopped               // the client was closed
	LossTaken                 // the hold goes on in another session, which has its token
)

// String returns the reason in lower case, one word.
func (l Loss) String() string {
	return [...]string{"unknown", "lease", "overdue", "forced", "expired", "restarted", "stopped", "resumed"}[l&7]
}

// SessionEnd says why a session is over for its client.
type SessionEnd uint8

// The ends of a session.
const (
	SessionGoesOn    SessionEnd = iota // or there has been none
	SessionClosed                      // by CloseSession
	SessionExpired                     // the group says that it is over, or that another has taken it
	SessionRestarted                   // Rebind: nobody has told the group
	SessionStopped                     // Close: nobody has told the group
)

// String returns the end in lower case, one word.
func (e SessionEnd) String() string {
	return [...]string{"", "closed", "expired", "restarted", "stopped", "", "", ""}[e&7]
}

// loss is what the end of a session means to what was held in it.
func (e SessionEnd) loss() Loss {
	return [...]Loss{LossExpired, LossExpired, LossExpired, LossRestarted, LossStopped, LossUnknown, LossUnknown,
		LossUnknown}[e&7]
}

// News is what has become of a client in a turn.
type News struct {
	Before, After Status
	// of each acknowledged renewal the time from its sending; valid until the function that is told
	// returns
	Renewed    []time.Duration
	Unanswered int // renewals on attachments that have ended without an answer to them
}

// tally is what a core counts for the news. Its slice is used again.
type tally struct {
	renewed    []time.Duration
	unanswered int
	ended      SessionEnd // how the last session did
}

// talliesKept bounds what is counted for a shell that never asks.
const talliesKept = 64

func (t *tally) answered(after time.Duration) {
	if len(t.renewed) < talliesKept {
		t.renewed = append(t.renewed, after)
	}
}

// takeRenewals returns what has become of renewals since the last call. The slice is valid until
// the next input.
func (c *Core) takeRenewals() (answered []time.Duration, unanswered int) {
	answered, unanswered = c.tally.renewed, c.tally.unanswered
	c.tally.renewed, c.tally.unanswered = c.tally.renewed[:0], 0
	return answered, unanswered
}

// differs reports whether anything has changed that is worth to be told. Counts and deadlines move
// all the time.
func (s *Status) differs(before *Status) bool {
	return s.Phase != before.Phase || s.Session != before.Session || s.Lease != before.Lease ||
		s.GraceUntil != before.GraceUntil || s.Leader != before.Leader
}

// tell passes the news on to whoever watches.
func (c *Client) tell(before, after Status) {
	if c.config.Watch == nil {
		return
	}
	renewed, unanswered := c.core.takeRenewals()
	if len(renewed) > 0 || unanswered > 0 || after.differs(&before) {
		c.config.Watch(&News{Before: before, After: after, Renewed: renewed, Unanswered: unanswered})
	}
}
