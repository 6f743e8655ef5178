package lockfsm

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"
)

// Restore returns the machine that a snapshot describes. It shares no memory with the snapshot. No bytes make it panic, or use more
// memory than a fixed multiple of their number, and what it returns satisfies [Machine.Check].
//
// The error is ErrSnapshot, wrapped, and also ErrRules if the state follows rules that this build does not know.
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
	charter := r.charter()
	if r.fault != "" {
		return nil, fmt.Errorf("%w: bad %s", ErrSnapshot, r.fault)
	}
	m, err := newMachine(charter, supported)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	m.restoreGroup(&r)
	m.restoreSessions(&r)
	m.restoreLocks(&r)
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
			KeyBytes: u32("limits"), WaitersPerLock: u32("limits"), EntriesPerSession: u32("limits"), Sessions: u32("limits"),
		},
		Settings: r.take(r.max(MaxSettingsBytes, "settings"), "settings"), // newMachine copies them
	}
}

func (m *Machine) restoreGroup(r *reader) {
	flags := r.flags(bornFlag|graceOverFlag, "flags")
	m.born, m.graceOver = flags&bornFlag != 0, flags&graceOverFlag != 0
	m.rev = Revision(r.sum(uint64(m.rev), uint64(maxRevision), "revision"))
	m.wallUnixMS = int64(r.sum(uint64(m.wallUnixMS), math.MaxInt64, "wall stamp"))
}

func (m *Machine) restoreSessions(r *reader) {
	const least = 22 // bytes of a session: nonce and six more
	id := uint64(m.charter.firstRevision())
	for range r.count(least, "sessions") {
		before := id
		id = r.sum(before, uint64(m.rev), "session")
		s := &session{id: SessionID(id)}
		copy(s.nonce[:], r.take(uint64(len(s.nonce)), "nonce"))
		s.epoch = Epoch(r.uvarint("epoch"))
		s.next = Number(r.max(uint64(MaxNumber)+1, "next number"))
		s.ttl = time.Duration(r.max(math.MaxInt64, "TTL"))
		s.leaving = r.flags(leavingFlag, "leaving") != 0
		s.record = copied(r.take(r.max(MaxRecordBytes, "record"), "record"))
		if id == before || m.nonces[s.nonce] != nil {
			r.fail("session")
		}
		if r.fault != "" {
			return
		}
		m.linkSession(s)
	}
}

func (m *Machine) restoreLocks(r *reader) {
	const leastLock, leastEntry = 7, 4 // bytes
	count := r.count(leastLock, "locks")
	m.locks = make(map[string]*lock, count)
	all := make([]*entry, 0, count)
	for range count {
		l := &lock{key: string(r.take(r.uvarint("key"), "key"))}
		entries := r.count(leastEntry, "entries")
		if entries == 0 || m.locks[l.key] != nil {
			r.fail("lock")
		}
		if r.fault != "" {
			return
		}
		m.linkLock(l)
		before := uint64(m.charter.firstRevision())
		for range entries {
			e := m.restoreEntry(r, l, before)
			if e == nil {
				return
			}
			before = uint64(e.rev)
			all = append(all, e)
		}
	}
	// The sessions' lists are in the order of arrival, which runs across locks.
	slices.SortFunc(all, byPlace)
	for _, e := range all {
		e.session.append(e)
	}
}

// restoreEntry reads an entry into l's queue and the lookup, but not yet into its session's list.
func (m *Machine) restoreEntry(r *reader, l *lock, before uint64) *entry {
	s := m.sessions[SessionID(r.sum(uint64(m.charter.firstRevision()), uint64(m.rev), "entry's session"))]
	e := &entry{lock: l, session: s, number: Number(r.max(uint64(MaxNumber), "number"))}
	e.rev = Revision(r.sum(before, uint64(m.rev), "entry's revision"))
	if s == nil || uint64(e.rev) == before || s.requests[e.number] != nil {
		r.fail("entry")
		return nil
	}
	token := r.sum(uint64(e.rev), uint64(m.rev), "token")
	if token != uint64(e.rev) {
		e.token = Token(token)
		e.sinceUnixMS = int64(r.sum(uint64(m.charter.FoundedUnixMS), math.MaxInt64, "time of the grant"))
	}
	if r.fault != "" {
		return nil
	}
	m.enqueue(e)
	return e
}
