package lockfsm

import (
	"encoding/binary"
	"hash/crc32"
)

// Capture is a snapshot that is taken in small steps, so that a large state does not keep its owner
// from granting. It is the state at the moment of [Machine.Capture], byte for byte what Snapshot
// would have given then, whatever commands are applied between the steps.
//
// A cursor walks the lists of sessions and of locks, which stand in the order of the snapshot and
// grow only at their ends. What is about to change or to go and has not been written is encoded
// first and set aside, and is written when the cursor comes to its place. The field seen of a
// session or a lock names the capture that has written it or set it aside, or the last one before
// it appeared. So while none is under way all have the same, and a command pays one comparison for
// each session or lock that it changes.
//
// A Capture belongs to the owner of its Machine until Step has reported the end. From then on it
// shares nothing with the Machine.
type Capture struct {
	m           *Machine // nil after the end
	session     *session // the next to look at
	lock        *lock
	lastSession uint64 // no session of the moment has an ID above it
	lastLock    uint64 // the same for the places of locks
	locks       int
	atLocks     bool   // the sessions are written
	before      uint64 // the ID of the session that was written last
	aside       asides
	scratch     []byte
	tail        []byte
	chunks      [][]byte
}

const (
	// chunkBytes is the size of the pieces in which the snapshot is collected. One buffer would be
	// copied whole each time it grows.
	chunkBytes = 64 << 10
	// roomBytes is what a session can need, or a lock whose queue is short. For a long queue a
	// chunk grows.
	roomBytes = MaxRecordBytes + 128

	// placesOfLocks is below the places of all locks. Those of sessions, their IDs, are lower.
	placesOfLocks = 1 << 63
)

// Capture begins a snapshot of the state as it is now. There is one at a time: a new one ends the
// one before, which then is done and appends nothing. A capture that nobody steps to its end costs
// what it has collected until then. That of a machine that has failed is done at once and appends
// nothing; one that was begun before the failure goes on.
func (m *Machine) Capture() *Capture {
	if m.failed != nil {
		return &Capture{}
	}
	if m.capture != nil {
		*m.capture = Capture{}
	}
	m.captures++
	m.capture = &Capture{
		m: m, session: m.firstSession, lock: m.firstLock, lastSession: uint64(m.rev), lastLock: m.lastPlace,
		locks:  m.counts.Locks,
		before: uint64(m.charter.firstRevision()), tail: m.appendTail(nil),
		chunks: [][]byte{binary.AppendUvarint(m.appendHeader(nil), uint64(m.counts.Sessions))},
	}
	return m.capture
}

// Step encodes about the next n sessions and locks, where a lock counts as often as it has entries,
// and reports whether that was all. n is positive. The owner of the Machine calls it, between
// commands.
func (c *Capture) Step(n int) (done bool) {
	for n > 0 && c.m != nil {
		n -= c.next()
	}
	return c.m == nil
}

// next writes what comes next in the order of places, from the lists or from what was set aside,
// and returns what that counts.
func (c *Capture) next() int {
	s, l, aside := c.session, c.lock, c.aside.first()
	switch {
	case s != nil && uint64(s.id) <= min(c.lastSession, aside):
		c.session = s.after
		c.writeSession(s)
	case aside < placesOfLocks:
		c.writeAside()
	case !c.atLocks:
		c.beginLocks()
	case l != nil && l.place <= min(c.lastLock, aside):
		c.lock = l.next
		c.writeLock(l)
		return l.entries()
	case c.aside.n > 0:
		c.writeAside()
	default:
		c.end()
	}
	return 1
}

func (c *Capture) writeSession(s *session) {
	if s.seen != c.m.captures {
		s.seen = c.m.captures
		b := c.chunk()
		*b = s.appendTo(c.appendID(*b, uint64(s.id)))
	}
}

func (c *Capture) writeLock(l *lock) {
	if l.seen != c.m.captures {
		l.seen = c.m.captures
		b := c.chunk()
		*b = c.m.appendLock(*b, l)
	}
}

func (c *Capture) writeAside() {
	a := c.aside.pop()
	b := c.chunk()
	if a.place < placesOfLocks {
		*b = c.appendID(*b, a.place)
	}
	*b = append(*b, a.body...)
}

func (c *Capture) beginLocks() {
	c.atLocks = true
	b := c.chunk()
	*b = binary.AppendUvarint(*b, uint64(c.locks))
}

// end parts the capture from the machine.
func (c *Capture) end() {
	b := c.chunk()
	*b = append(*b, c.tail...)
	c.m.capture = nil
	*c = Capture{chunks: c.chunks}
}

// appendID appends a session's ID, which is written as the difference to the one before.
func (c *Capture) appendID(b []byte, id uint64) []byte {
	b = binary.AppendUvarint(b, id-c.before)
	c.before = id
	return b
}

// chunk returns the chunk to append to.
func (c *Capture) chunk() *[]byte {
	if len(c.chunks[len(c.chunks)-1]) > chunkBytes-roomBytes {
		c.chunks = append(c.chunks, make([]byte, 0, chunkBytes))
	}
	return &c.chunks[len(c.chunks)-1]
}

// AppendTo appends the snapshot to b, after Step has reported the end; before that it appends
// nothing. It copies and reads all of it once, with no more than one allocation, and calls pause
// between pieces of some tens of microseconds, so that whoever does more urgent work can have the
// processor. It may run on another goroutine than the Machine's, and changes nothing in the
// Capture.
func (c *Capture) AppendTo(b []byte, pause func()) []byte {
	if c.m != nil || c.chunks == nil {
		return b
	}
	size := checksumBytes
	for _, chunk := range c.chunks {
		size += len(chunk)
	}
	if room := len(b) + size; cap(b) < room {
		// Not slices.Grow: that clears all of it in one go, in which the runtime cannot stop this
		// goroutine, and stops all others meanwhile.
		b = append(make([]byte, 0, room), b...)
	}
	sum := uint32(0)
	for _, chunk := range c.chunks {
		b = append(b, chunk...)
		sum = crc32.Update(sum, castagnoli(), chunk)
		pause()
	}
	return binary.LittleEndian.AppendUint32(b, sum)
}
