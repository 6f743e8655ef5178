package lockfsm

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/mortise-lock/mortise/internal/capability"
)

// Capture is a snapshot that is taken in small steps, so that a large state does not delay grants.
// Its bytes are those that Snapshot would have returned when [Machine.Capture] was called.
//
// A cursor walks the lists of sessions and of locks, which have the order of the snapshot and grow
// only at their ends. If a command changes a session or lock that the cursor has not reached, the
// machine first encodes the unchanged state into the overlay. The overlay keeps the bytes until the
// cursor reaches their place. Each session and each lock has a field, seen: the number of the last
// capture that has encoded it. A new session or lock begins with the number of the last capture.
// While no capture is under way, all these numbers are therefore equal, and a command needs one
// comparison for each session or lock that it changes.
//
// Only the goroutine that owns the Machine may use a Capture until Step has returned true. After
// that the Capture shares nothing with the Machine.
type Capture struct {
	in          *captures // nil after the end
	founded     int64     // the founding time of the group
	session     *session
	lock        *lock
	lastSession uint64 // sessions with a higher ID are newer than the capture
	lastLock    uint64 // locks at a higher place are newer than the capture
	locks       int
	atLocks     bool
	before      uint64
	overlay     overlay
	scratch     []byte
	tail        []byte
	chunks      [][]byte
}

const (
	chunkBytes = 64 << 10
	// roomBytes is the free space that a chunk must have before a session or a lock is written to
	// it. A lock with a long queue makes the chunk grow.
	roomBytes = MaxRecordBytes + capability.MaxBytes + 128

	// placesOfLocks is below the places of all locks and above the IDs of all sessions.
	placesOfLocks = 1 << 63
)

// captures has the capture that is under way.
type captures struct {
	now  *Capture
	last uint32 // the number of the last capture
}

// sessionChanges must be called before s is removed or changes in a way that a snapshot shows.
func (c *captures) sessionChanges(s *session) {
	if s.seen != c.last {
		c.now.keepSession(s)
	}
}

// lockChanges must be called before l is removed, and before l, its queue or its entries change in
// a way that a snapshot shows.
func (c *captures) lockChanges(l *lock) {
	if l.seen != c.last {
		c.now.keepLock(l)
	}
}

// passOver must be called before l leaves the list of locks.
func (c *captures) passOver(l *lock) {
	if c.now != nil && c.now.lock == l {
		c.now.lock = l.next
	}
}

// begin makes one the capture that is under way.
func (c *captures) begin(one *Capture) {
	if c.now != nil {
		*c.now = Capture{}
	}
	c.last++
	c.now, one.in = one, c
}

// Capture begins a snapshot of the present state. If another capture is under way, Capture ends it,
// and the ended capture appends nothing. An unfinished capture keeps its memory until the next call
// of Capture. The capture of a failed machine appends nothing. A capture that began before the
// failure continues.
func (m *Machine) Capture() *Capture {
	if m.failed != nil {
		return &Capture{}
	}
	c := &Capture{
		founded: m.charter.FoundedUnixMS, session: m.sessions.first, lock: m.locks.first,
		lastSession: uint64(m.rev), lastLock: m.locks.lastPlace,
		locks:  m.counts.Locks,
		before: uint64(m.charter.firstRevision()), tail: m.appendTail(nil),
		chunks: [][]byte{binary.AppendUvarint(m.appendHeader(nil), uint64(m.counts.Sessions))},
	}
	m.captures.begin(c)
	return c
}

// Step encodes about n more sessions and locks, and reports whether the capture is done. A lock
// with k entries counts as k. n must be positive. Only the owner of the Machine may call it,
// between commands.
func (c *Capture) Step(n int) (done bool) {
	for n > 0 && c.in != nil {
		n -= c.next()
	}
	return c.in == nil
}

func (c *Capture) next() int {
	s, l, aside := c.session, c.lock, c.overlay.first()
	switch {
	case s != nil && uint64(s.id) <= min(c.lastSession, aside):
		c.session = s.after
		c.writeSession(s)
	case aside < placesOfLocks:
		c.writeOverlay()
	case !c.atLocks:
		c.beginLocks()
	case l != nil && l.position <= min(c.lastLock, aside):
		c.lock = l.next
		c.writeLock(l)
		return l.entries()
	case c.overlay.n > 0:
		c.writeOverlay()
	default:
		c.end()
	}
	return 1
}

func (c *Capture) writeSession(s *session) {
	if s.seen != c.in.last {
		s.seen = c.in.last
		b := c.chunk()
		*b = s.appendTo(c.appendID(*b, uint64(s.id)))
	}
}

func (c *Capture) writeLock(l *lock) {
	if l.seen != c.in.last {
		l.seen = c.in.last
		b := c.chunk()
		*b = l.appendTo(*b, c.founded)
	}
}

func (c *Capture) keepSession(s *session) {
	s.seen = c.in.last
	c.scratch = s.appendTo(c.scratch[:0])
	c.overlay.push(overlayItem{uint64(s.id), copied(c.scratch)})
}

func (c *Capture) keepLock(l *lock) {
	l.seen = c.in.last
	c.scratch = l.appendTo(c.scratch[:0], c.founded)
	c.overlay.push(overlayItem{l.position, copied(c.scratch)})
}

func (c *Capture) writeOverlay() {
	a := c.overlay.pop()
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

func (c *Capture) end() {
	b := c.chunk()
	*b = append(*b, c.tail...)
	c.in.now = nil
	*c = Capture{chunks: c.chunks}
}

func (c *Capture) appendID(b []byte, id uint64) []byte {
	b = binary.AppendUvarint(b, id-c.before)
	c.before = id
	return b
}

func (c *Capture) chunk() *[]byte {
	if len(c.chunks[len(c.chunks)-1]) > chunkBytes-roomBytes {
		c.chunks = append(c.chunks, make([]byte, 0, chunkBytes))
	}
	return &c.chunks[len(c.chunks)-1]
}

// AppendTo appends the snapshot to b if Step has returned true, and nothing otherwise. It allocates
// at most once. It calls pause after each chunk, every few tens of microseconds, so that more
// urgent work can run. Any goroutine may call AppendTo.
func (c *Capture) AppendTo(b []byte, pause func()) []byte {
	if c.in != nil || c.chunks == nil {
		return b
	}
	size := checksumBytes
	for _, chunk := range c.chunks {
		size += len(chunk)
	}
	if room := len(b) + size; cap(b) < room {
		// slices.Grow would clear the whole buffer in one step that cannot be preempted, and so
		// delay every stop of the world.
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
