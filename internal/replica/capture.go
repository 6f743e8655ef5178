package replica

import "github.com/mortise-lock/mortise/lockfsm"

// captureStep is the number of sessions and locks that are encoded at the end of each turn while a
// snapshot is taken. Encoding them takes some tens of microseconds, less than the turn itself under
// load.
const captureStep = 256

// capture is a snapshot of the state machine, as a raftlog.Capture.
type capture struct {
	*lockfsm.Capture
	size func() int // returns the size of the next step
}

// Step implements raftlog.Capture.
func (c *capture) Step() (done bool) { return c.Capture.Step(c.size()) }
