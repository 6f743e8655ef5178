package client

import "time"

// This file contains the reports of a client for operators and metrics.

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
