package replica

import "github.com/mortise-lock/mortise/lockfsm"

// captureStep is the number of sessions and locks that a snapshot encodes at the end of each turn.
// Encoding them takes some tens of microseconds, less than the turn under load.
const captureStep = 256

type capture struct {
	*lockfsm.Capture
	size func() int
}

// Step implements raftlog.Capture.
func (c *capture) Step() (done bool) { return c.Capture.Step(c.size()) }
