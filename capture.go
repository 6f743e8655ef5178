package mortise

import (
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
)

// capture begins a snapshot of the state machine. For now it is encoded at once, which is one long step.
func capture(m *lockfsm.Machine) raftlog.Capture { return captured(m.Snapshot(nil)) }

// captured is an encoded state.
type captured []byte

// Step implements raftlog.Capture.
func (c captured) Step() (done bool) { return true }

// AppendTo implements raftlog.Capture.
func (c captured) AppendTo(b []byte) []byte { return append(b, c...) }
