package sim

import (
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
)

// capture begins a snapshot of a state machine. For now it is encoded at once, and the steps are for show: what comes between them is not.
func capture(m *lockfsm.Machine) raftlog.Capture { return &captured{state: m.Snapshot(nil), left: 4} }

type captured struct {
	state []byte
	left  int
}

func (c *captured) Step() (done bool) {
	c.left--
	return c.left <= 0
}

func (c *captured) AppendTo(b []byte) []byte { return append(b, c.state...) }
