//go:build nextrules

package lockfsm

import "encoding/binary"

// This file simulates a future build with version 2 of the rules, for upgrade tests. No release
// uses the build tag nextrules.

// RulesVersion is the newest version of the rules that this build has.
const RulesVersion uint32 = 2

// Mark increments a counter. It exists since version 2.
const Mark Kind = 200

const marksSince = 2

type laterState struct{ marks uint64 }

func (k Kind) laterName() string {
	if k == Mark {
		return "mark"
	}
	return "unknown kind"
}

func (r *reader) later(v *view) {
	if v.Kind != Mark || v.Rules < marksSince {
		r.fail("kind")
	}
}

func (m *Machine) later(*view) Code {
	m.bump()
	m.marks++
	return Done
}

func (m *Machine) appendLater(b []byte) []byte {
	if m.charter.Rules < marksSince {
		return b
	}
	return binary.AppendUvarint(b, m.marks)
}

func (m *Machine) restoreLater(r *reader) {
	if m.charter.Rules >= marksSince {
		m.marks = r.uvarint("marks")
	}
}
