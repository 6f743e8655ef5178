package replica

import "github.com/mortise-lock/mortise/lockfsm"

// captureStep is the number of sessions and locks that a snapshot encodes at the end of each turn,
// in some tens of microseconds.
const captureStep = 256

type capture struct {
	*lockfsm.Capture
	size func() int
}

func (c *capture) Step() (done bool) { return c.Capture.Step(c.size()) }
