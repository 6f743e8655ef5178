package lockfsm

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
)

// Restore returns the machine that a snapshot describes. The machine shares no memory with the
// snapshot and satisfies [Machine.Check]. Restore does not panic on any input, and uses at most a
// fixed multiple of the input's size as memory.
//
// The error wraps ErrSnapshot, and also ErrRules if this build does not have the rules of the
// state.
func Restore(snapshot []byte) (*Machine, error) { return restore(snapshot, RulesVersion) }

func restore(snapshot []byte, supported uint32) (*Machine, error) {
	n := len(snapshot) - checksumBytes
	if n < len(snapshotMagic) || string(snapshot[:len(snapshotMagic)]) != snapshotMagic {
		return nil, fmt.Errorf("%w: the %d bytes do not begin like one", ErrSnapshot, len(snapshot))
	}
	if want, got := binary.LittleEndian.Uint32(snapshot[n:]), checksum(snapshot[:n]); want != got {
		return nil, fmt.Errorf("%w: checksum %08x, want %08x: it is cut off or damaged", ErrSnapshot, got, want)
	}
	r := reader{b: snapshot[len(snapshotMagic):n]}
	if v := r.uvarint("version"); v != snapshotVersion {
		return nil, fmt.Errorf("%w: format version %d, this build knows version %d", ErrSnapshot, v, snapshotVersion)
	}
	var fingerprint uint64
	if f := r.bytes(8, "fingerprint"); len(f) == 8 {
		fingerprint = binary.LittleEndian.Uint64(f)
	}
	charter := r.charter()
	if r.fault != "" {
		return nil, fmt.Errorf("%w: bad %s", ErrSnapshot, r.fault)
	}
	m, err := newMachine(charter, supported)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if err := checkFingerprint(charter.Rules, fingerprint); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	m.restoreGroup(&r)
	m.restoreSessions(&r)
	(&locksReader{reader: &r, m: m, index: map[*extra]int{}}).locks()
	m.restoreEvents(&r)
	m.restoreLater(&r)
	r.end()
	if r.fault != "" {
		return nil, fmt.Errorf("%w: bad %s", ErrSnapshot, r.fault)
	}
	if err := m.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return m, nil
}

func (r *reader) charter() Charter {
	u32 := func(what string) uint32 { return uint32(r.max(math.MaxUint32, what)) }
	return Charter{
		Group:         r.uvarint("group"),
		FoundedUnixMS: int64(r.max(math.MaxInt64, "founding time")),
		Rules:         u32("rules version"),
		SessionTTL:    time.Duration(r.max(math.MaxInt64, "session TTL")),
		Grace:         time.Duration(r.max(math.MaxInt64, "grace")),
		Limits: Limits{
			KeyBytes: u32("limits"), WaitersPerLock: u32("limits"), EntriesPerSession: u32("limits"),
			Sessions:     u32("limits"),
			SessionBytes: r.uvarint("limits"), GroupBytes: r.uvarint("limits"),
		},
		Settings: r.bytes(r.max(MaxSettingsBytes, "settings"), "settings"), // newMachine copies them
	}
}

func (m *Machine) restoreGroup(r *reader) {
	flags := r.flags(bornFlag|graceOverFlag, "flags")
	rev := Revision(r.sum(uint64(m.rev), uint64(maxRevision), "revision"))
	wallUnixMS := int64(r.sum(uint64(m.wallUnixMS), math.MaxInt64, "wall stamp"))
	m.group.restored(flags&bornFlag != 0, flags&graceOverFlag != 0, rev, wallUnixMS)
	if chain := r.bytes(8, "chain"); len(chain) == 8 {
		m.digest.restored(binary.LittleEndian.Uint64(chain), rev)
	}
}

func (m *Machine) restoreEvents(r *reader) {
	const least = 8 // no event has fewer bytes
	first := uint64(m.charter.firstRevision())
	m.history.restored(r.max(uint64(maxRevision)-first, "events"))
	position := first
	for range r.count(least, "ends") {
		before, of := position, r.party()
		position = r.sum(before, m.Position(), "end")
		e := Event{Position: position, What: EventKind(r.flags(0xff, "end")), Cause: Cause(r.flags(0xff, "end"))}
		if e.What != Moved {
			e.Part = r.part()
			e.Token, e.Session = Token(r.sum(first, uint64(m.rev), "end's token")),
				SessionID(r.sum(first, uint64(m.rev), "end's session"))
		}
		e.WallUnixMS = int64(r.sum(uint64(m.charter.FoundedUnixMS), uint64(m.wallUnixMS), "time of the end"))
		if e.What != Moved {
			e.Record = copied(r.bytes(r.max(MaxRecordBytes, "record"), "record"))
		}
		if r.flags(1, "end") == 1 {
			e.How = &How{By: copied(r.bytes(r.max(MaxRecordBytes, "by"), "by")),
				Reason: copied(r.bytes(r.max(MaxValueBytes, "reason"), "reason"))}
		}
		if position == before || !e.audits() || len(m.history.audit.ends) == endsKept {
			r.fail("end")
		}
		if r.fault != "" {
			return
		}
		m.history.audit.add(e, of)
	}
}

func (r *reader) part() Part {
	p := Part{Key: string(r.bytes(r.uvarint("key"), "key"))}
	if p.Mode, p.Permits, p.Of = r.mode(); p.Mode != ModePermits {
		p.Permits, p.Of = 0, 0
	}
	p.Tree = r.flags(1, "mode") == 1
	tree := !p.Tree && p.Mode != ModeS || p.Tree && (p.Mode == ModeS || p.Mode == ModeX)
	if p.Mode == ModeIX || !tree {
		r.fail("mode")
	}
	return p
}

func (m *Machine) restoreSessions(r *reader) {
	const least = 40 // fewest bytes of a session: nonce 16, opener 17, seven fields of 1
	id := uint64(m.charter.firstRevision())
	for range r.count(least, "sessions") {
		before := id
		id = r.sum(before, uint64(m.rev), "session")
		s := &session{eventHolder: &eventHolder{id: SessionID(id)}}
		copy(s.nonce[:], r.bytes(uint64(len(s.nonce)), "nonce"))
		copy(s.opener.Instance[:], r.bytes(uint64(len(s.opener.Instance)), "opener"))
		s.life = r.uvarint("life")
		text := r.bytes(r.max(capability.MaxBytes, "rights"), "rights")
		s.epoch = Epoch(r.uvarint("epoch"))
		s.next = Number(r.max(uint64(MaxNumber)+1, "next number"))
		s.ttl = time.Duration(r.max(math.MaxInt64, "TTL"))
		flags := r.flags(leavingFlag|goneFlag, "flags")
		s.leaving, s.gone = flags&leavingFlag != 0, flags&goneFlag != 0
		s.record = copied(r.bytes(r.max(MaxRecordBytes, "record"), "record"))
		if id == before || !s.gone && m.sessions.byNonce[s.nonce] != nil {
			r.fail("session")
		}
		if r.fault != "" {
			return
		}
		valid := false
		if s.rights, valid = m.sessions.rights.read(text); !valid {
			r.fail("rights")
			return
		}
		s.opener.Capability = s.rights.all().Hash()
		m.linkSession(s)
	}
}
