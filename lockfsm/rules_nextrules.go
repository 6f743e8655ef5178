//go:build nextrules

package lockfsm

import "encoding/binary"

// This file simulates a future build with version 2 of the rules, for upgrade tests. No release
// uses the build tag nextrules.

// RulesVersion is the newest version of the rules that this build has.
const RulesVersion uint32 = 2

// Mark increments a counter. A client sends it. It exists since version 2.
const Mark Kind = 200

const marksSince = 2

// noteFlag is the flag of an Acquire with a Note.
const noteFlag = acquireFlags + 1

// laterCommand has the fields that version 2 adds to Command. Note is a remark on an Acquire, at
// most MaxValueBytes long. It changes nothing.
type laterCommand struct{ Note string }

type laterView struct{ note []byte }

func (c laterCommand) laterFlags() uint64 {
	if c.Note != "" {
		return noteFlag
	}
	return 0
}

func (c laterCommand) appendLater(b []byte) []byte {
	if c.Note == "" {
		return b
	}
	return appendString(b, c.Note)
}

func (v *view) laterFlags() uint64 {
	if v.Rules >= marksSince {
		return noteFlag
	}
	return 0
}

func (v *view) laterCommand() laterCommand { return laterCommand{Note: string(v.note)} }

func (v *view) laterAcquire(r *reader, flags uint64) {
	if flags&noteFlag != 0 {
		v.note = r.bytes(r.positive(MaxValueBytes, "note"), "note")
	}
}

type laterState struct{ marks uint64 }

func (k Kind) laterName() string {
	if k == Mark {
		return "mark"
	}
	return "unknown kind"
}

func (v *view) later(r *reader) {
	if v.Kind != Mark || v.Rules < marksSince {
		r.fail("kind")
	}
}

func (m *Machine) later() Code {
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

const fingerprint2 uint64 = 0x5f371b7470972286

func laterFingerprints(all []uint64) []uint64 { return append(all, fingerprint2) }

func (m *Machine) restoreLater(r *reader) {
	if m.charter.Rules >= marksSince {
		m.marks = r.uvarint("marks")
	}
}
