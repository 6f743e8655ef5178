package lockfsm

import (
	"encoding/binary"
	"hash/crc32"
)

// The layout of a snapshot, integers as shortest uvarints unless a size is given:
//
//	"mlfs" | version | fingerprint of the rules in force (8 bytes, little endian)
//	group | founded | rules | session TTL | grace | the six limits | length, settings
//	flags (1 byte: 1 born, 2 grace over) | revision - first revision | wall stamp - founded |
//	  chain of the digest (8 bytes, little endian)
//	sessions: count | each, ascending:
//	  ID - ID before | nonce (16 bytes) | instance of the opener (16 bytes) | life |
//	  length, rights | epoch | next | TTL |
//	  flags (1 byte: 1 leaving, 2 gone) | length, record
//	locks: count | each, in order of appearance:
//	  length, key |
//	  0, or data's revision - first revision, nonce (16 bytes), length, value |
//	  entries | each, in order of the queue:
//	    session - first revision | number | revision - revision before |
//	    0, or token - revision and grant's wall stamp - founded |
//	    flags (1 byte) | per flag:
//	      1 mode (1 byte), and of permits: permits, of |
//	      2 number of queues of the request | 4 owner | 8 length, value |
//	      16, 32 see Change.Wanted | 64 delay in ms |
//	      128 flags (1 byte: 1 sticky, 2 try, 4 seq, 8 upgrade, 16 resumed) | seq |
//	        of a granted sticky entry:
//	        0, or last - token | 0, or Change.Asked - revision
//	    (the entry after an upgrade counts its revision from that of the entry before the upgrade)
//	    (of a request in several queues, only the entry with the lowest key has owner, value,
//	    delay and seq)
//	events: number of all events | the audit log: count | each, the oldest first:
//	  0 no capability, 1 detached, or 2 and the hash of a capability |
//	  position - position before | kind (1 byte) | cause (1 byte) | length, key |
//	  mode (1 byte), and of permits: permits, of | 1 if it is a tree, else 0 (1 byte) |
//	  token - first revision | session - first revision | wall stamp - founded |
//	  length, record | flags (1 byte: 1 the next two) | length, by | length, reason
//	  (Moved has none from the key to the session, and no record)
//	what later versions of the rules add, if they are in force
//	CRC32C of all that (4 bytes, little endian)

const (
	snapshotMagic   = "mlfs"
	snapshotVersion = 1
	checksumBytes   = 4

	bornFlag      = 1
	graceOverFlag = 2
	leavingFlag   = 1
	goneFlag      = 2

	entryModeFlag    = 1
	entrySeveralFlag = 2
	entryOwnerFlag   = 4
	entryValueFlag   = 8
	entryNoticeFlag  = 16
	entryToldFlag    = 32
	entryDelayFlag   = 64
	entryMoreFlag    = 128

	entryStickyFlag  = 1
	entryTryFlag     = 2
	entrySeqFlag     = 4
	entryUpgradeFlag = 8
	entryResumedFlag = 16
	entryInnerFlag   = 32 // only with entryUpgradeFlag
)

// Snapshot appends the whole state to b: the bytes of a [Capture] that begins now. Equal logs give
// equal bytes on every replica. A failed machine appends nothing, because its state lacks the
// effects of later log entries. Snapshot does not affect a capture that is under way.
func (m *Machine) Snapshot(b []byte) []byte {
	if m.failed != nil {
		return b
	}
	start := len(b)
	b = binary.AppendUvarint(m.appendHeader(b), uint64(m.counts.Sessions))
	before := uint64(m.charter.firstRevision())
	for s := m.sessions.first; s != nil; s = s.after {
		b = s.appendTo(binary.AppendUvarint(b, uint64(s.id)-before))
		before = uint64(s.id)
	}
	b = binary.AppendUvarint(b, uint64(m.counts.Locks))
	for l := range m.locks.inOrder() {
		b = l.appendTo(b, m.charter.FoundedUnixMS)
	}
	b = m.appendTail(b)
	return binary.LittleEndian.AppendUint32(b, checksum(b[start:]))
}

func (m *Machine) appendHeader(b []byte) []byte {
	b = append(b, snapshotMagic...)
	b = binary.AppendUvarint(b, snapshotVersion)
	b = binary.LittleEndian.AppendUint64(b, fingerprintOf(m.charter.Rules))
	b = m.charter.appendTo(b)
	var flags byte
	if m.born {
		flags |= bornFlag
	}
	if m.graceOver {
		flags |= graceOverFlag
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, uint64(m.rev-m.charter.firstRevision()))
	b = binary.AppendUvarint(b, uint64(m.wallUnixMS-m.charter.FoundedUnixMS))
	return binary.LittleEndian.AppendUint64(b, m.digest.chain)
}

func (c Charter) appendTo(b []byte) []byte {
	for _, v := range [...]uint64{
		c.Group, uint64(c.FoundedUnixMS), uint64(c.Rules), uint64(c.SessionTTL), uint64(c.Grace),
		uint64(c.Limits.KeyBytes), uint64(c.Limits.WaitersPerLock), uint64(c.Limits.EntriesPerSession),
		uint64(c.Limits.Sessions),
		c.Limits.SessionBytes, c.Limits.GroupBytes,
	} {
		b = binary.AppendUvarint(b, v)
	}
	b = binary.AppendUvarint(b, uint64(len(c.Settings)))
	return append(b, c.Settings...)
}

func (s *session) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(append(append(b, s.nonce[:]...), s.opener.Instance[:]...), s.life)
	b = appendString(b, s.rights.all().Text())
	b = binary.AppendUvarint(b, uint64(s.epoch))
	next := s.next
	b = binary.AppendUvarint(b, uint64(next))
	b = binary.AppendUvarint(b, uint64(s.ttl))
	var flags byte
	if s.leaving {
		flags = leavingFlag
	}
	if s.gone {
		flags |= goneFlag
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, uint64(len(s.record)))
	return append(b, s.record...)
}

// appendTo appends a lock of a group that was founded at a time.
func (l *lock) appendTo(b []byte, founded int64) []byte {
	b = binary.AppendUvarint(b, uint64(len(l.key)))
	b = append(b, l.key...)
	first := uint64(revisionAt(founded))
	b = l.data.appendTo(b, first)
	b = binary.AppendUvarint(b, uint64(l.entries()))
	before := first
	for e := l.first; e != nil; e = e.after {
		b = binary.AppendUvarint(b, uint64(e.session.id)-first)
		b = binary.AppendUvarint(b, uint64(e.number))
		b = binary.AppendUvarint(b, uint64(e.rev)-before)
		if !e.upgrades() {
			before = uint64(e.rev)
		}
		if e.token == 0 {
			b = append(b, 0)
		} else {
			b = binary.AppendUvarint(b, uint64(e.token)-uint64(e.rev))
			b = binary.AppendUvarint(b, uint64(e.sinceUnixMS()-founded))
		}
		b = e.appendTerms(b)
	}
	return b
}

func (d *Data) appendTo(b []byte, first uint64) []byte {
	if d == nil {
		return append(b, 0)
	}
	b = append(binary.AppendUvarint(b, uint64(d.Revision)-first), d.nonce[:]...)
	return append(binary.AppendUvarint(b, uint64(len(d.Value))), d.Value...)
}

func (m *Machine) appendTail(b []byte) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, m.history.past), uint64(len(m.history.audit.ends)))
	first := uint64(m.charter.firstRevision())
	before := first
	for i := range m.history.audit.ends {
		e := &m.history.audit.ends[i].event
		b = m.history.audit.ends[i].of.append(b)
		b = append(binary.AppendUvarint(b, e.Position-before), byte(e.What), byte(e.Cause))
		before = e.Position
		if e.What != Moved {
			b = appendPart(b, &e.Part)
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(e.Token)-first), uint64(e.Session)-first)
		}
		b = binary.AppendUvarint(b, uint64(e.WallUnixMS-m.charter.FoundedUnixMS))
		if e.What != Moved {
			b = append(binary.AppendUvarint(b, uint64(len(e.Record))), e.Record...)
		}
		if e.How == nil {
			b = append(b, 0)
			continue
		}
		b = append(binary.AppendUvarint(append(b, 1), uint64(len(e.How.By))), e.How.By...)
		b = append(binary.AppendUvarint(b, uint64(len(e.How.Reason))), e.How.Reason...)
	}
	return m.appendLater(b)
}

func appendPart(b []byte, p *Part) []byte {
	var tree byte
	if p.Tree {
		tree = 1
	}
	return append(appendMode(appendString(b, p.Key), p.Mode, p.Permits, p.Of), tree)
}

func (e *entry) appendTerms(b []byte) []byte {
	var flags byte
	if e.mode != ModeX {
		flags |= entryModeFlag
	}
	if e.notice {
		flags |= entryNoticeFlag
	}
	if e.told {
		flags |= entryToldFlag
	}
	if e.more() != 0 {
		flags |= entryMoreFlag
	}
	if e.extra == nil {
		b = append(b, flags)
		return e.appendMore(e.appendMode(b))
	}
	if e.extra.entries != nil {
		flags |= entrySeveralFlag
	}
	first := e.lead() == e
	if e.extra.owner != 0 && first {
		flags |= entryOwnerFlag
	}
	if len(e.extra.value) > 0 && first {
		flags |= entryValueFlag
	}
	if e.extra.delayMS != 0 && first {
		flags |= entryDelayFlag
	}
	b = e.appendMode(append(b, flags))
	if flags&entrySeveralFlag != 0 {
		b = binary.AppendUvarint(b, uint64(len(e.extra.entries)))
	}
	if flags&entryOwnerFlag != 0 {
		b = binary.AppendUvarint(b, uint64(e.extra.owner))
	}
	if flags&entryValueFlag != 0 {
		b = binary.AppendUvarint(b, uint64(len(e.extra.value)))
		b = append(b, e.extra.value...)
	}
	if flags&entryDelayFlag != 0 {
		b = binary.AppendUvarint(b, uint64(e.extra.delayMS))
	}
	return e.appendMore(b)
}

func (e *entry) appendMode(b []byte) []byte {
	if e.mode == ModeX {
		return b
	}
	permits, of := e.shares()
	return appendMode(b, e.mode, permits, of)
}

// more returns the second byte of flags.
func (e *entry) more() (flags byte) {
	if e.sticky() {
		flags |= entryStickyFlag
	}
	if e.try {
		flags |= entryTryFlag
	}
	if e.extra != nil && e.extra.seq != 0 && e.lead() == e {
		flags |= entrySeqFlag
	}
	if e.upgrades() {
		flags |= entryUpgradeFlag
		if e.extra.inner != 0 {
			flags |= entryInnerFlag
		}
	}
	if e.resumed() {
		flags |= entryResumedFlag
	}
	return flags
}

func (e *entry) appendMore(b []byte) []byte {
	flags := e.more()
	if flags == 0 {
		return b
	}
	b = append(b, flags)
	if flags&entrySeqFlag != 0 {
		b = binary.AppendUvarint(b, e.extra.seq)
	}
	if flags&entryInnerFlag != 0 {
		b = binary.AppendUvarint(b, uint64(e.extra.inner))
	}
	s := e.stay()
	switch {
	case s == nil || e.token == 0:
		return b
	case s.last == 0:
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(s.last-e.token))
	if s.asked == 0 {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, uint64(s.asked-e.rev))
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli()) }

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }
