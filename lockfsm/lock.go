package lockfsm

import "math"

// noTotal is the total of an entry that names none.
const noTotal = math.MaxUint32

// lock is the queue and the data of one key. It exists while it has an entry or data.
//
// The entries at the front of the queue that may hold the lock together are called inside. They
// wait for no other entry of this queue. Each entry names its permits and a total. An entry fits if
// its permits, added to those of all inside entries, do not exceed the lowest total of all these
// entries. The first entry that does not fit is outside, and so is every entry after it. So a
// waiting writer stops later readers. An entry stays inside until it is removed.
//
// An upgrade is an exception: it comes before the entries that wait, and fits beside its own hold
// (requests.go).
type lock struct {
	key         string
	first, last *entry
	boundary    *entry // the first entry that is not inside; nil if all entries are inside
	waiting     uint32
	held        uint32 // the granted entries
	inside      uint32 // the inside entries
	tries       uint32 // the waiting requests with Try
	taken       uint32
	least       uint32 // the lowest total that an inside entry names
	leasts      uint32 // the number of inside entries that name this lowest total
	leads       int32  // the entries that lead on, see circle.go
	links       int32  // the entries that link back
	stays       uint32 // the inside entries that are stays, or will be when they are granted
	data        *Data  // nil if there is none; replaced, never changed
	notices     uint32 // the granted entries that asked for a notice and have not received it
	index       *insideIndex
	seen        uint32
	position    uint64
	prev, next  *lock
}

func (e *entry) terms() (permits, of uint32) {
	switch {
	case e.of != 0:
		return e.permits, e.of
	case e.permits != 0:
		return 1, noTotal
	}
	return 1, 1
}

func (l *lock) fits(permits, of uint32) bool {
	return l.taken == 0 || uint64(l.taken)+uint64(permits) <= uint64(min(l.least, of))
}

// takes reports whether a new request with these permits and this total would be inside.
func (l *lock) takes(permits, of uint32) bool {
	e := entry{permits: permits, of: of}
	return l.boundary == nil && l.fits(e.terms())
}

// accepts reports whether e, the first entry that is not inside, can be inside.
func (l *lock) accepts(e *entry) bool {
	if e.upgrades() {
		return l.alone(e.upgraded())
	}
	return l.fits(e.terms())
}

func (m *Machine) arrives(l *lock, e *entry) {
	switch {
	case l.boundary != e.after: // e waits behind the boundary
	case l.accepts(e):
		m.admit(l, e)
	default:
		l.boundary = e
	}
}

func (m *Machine) admit(l *lock, e *entry) {
	permits, of := e.terms()
	e.holding = true
	switch {
	case l.taken == 0 || of < l.least:
		l.least, l.leasts = of, 1
	case of == l.least:
		l.leasts++
	}
	l.taken += permits
	if e.mayStay() {
		l.stays++
	}
	if e.awaitsNotice() {
		l.notices++
	}
	l.inside++
	switch {
	case l.index != nil:
		l.index.totals.add(of)
		l.index.add(e)
	case l.inside >= m.indexFrom:
		m.buildIndex(l)
	}
}

// awaitsNotice reports whether e is granted, asked for a notice and has not received it.
func (e *entry) awaitsNotice() bool { return e.notice && !e.told && e.token != 0 }

// This method must be called after e has left l's queue. It admits the entries that fit now.
func (m *Machine) removed(l *lock, e *entry) {
	switch {
	case e.holding:
		m.discharge(l, e)
	case l.boundary == e:
		l.boundary = e.after
	}
	m.admitNext(l)
}

func (m *Machine) admitNext(l *lock) {
	for l.boundary != nil {
		if !l.accepts(l.boundary) {
			return
		}
		m.admit(l, l.boundary)
		m.touch(l.boundary)
		l.boundary = l.boundary.after
	}
}

// discharge subtracts the permits of e, which has left the queue.
func (m *Machine) discharge(l *lock, e *entry) {
	permits, of := e.terms()
	l.taken -= permits
	if e.mayStay() {
		l.stays--
	}
	if e.awaitsNotice() {
		l.notices--
	}
	l.inside--
	if l.index != nil {
		l.index.totals.remove(of)
		if l.index.drop(e); l.inside <= indexUntil {
			l.index = nil
		}
	}
	if of != l.least {
		return
	}
	if l.leasts--; l.leasts == 0 {
		m.findLeast(l)
	}
}

func (e *entry) isUpgradable() bool { return e.mode == ModeU }

func (e *entry) upgrades() bool { return e.extra != nil && e.extra.upgrades }

// upgraded returns the hold that e upgrades. It returns nil if e is no upgrade, or if the hold has
// been removed by the same command that removes e.
func (e *entry) upgraded() *entry {
	if !e.upgrades() {
		return nil
	}
	if hold := e.owner(); hold != nil && hold.lock == e.lock && hold.isUpgradable() {
		return hold
	}
	return nil
}

// alone reports whether no entry is inside except hold, which may be nil.
func (l *lock) alone(hold *entry) bool {
	if hold != nil && hold.holding {
		return l.taken == upgradablePermits
	}
	return l.taken == 0
}

func (l *lock) lastInside() *entry {
	if l.boundary != nil {
		return l.boundary.ahead
	}
	return l.last
}

func (l *lock) entries() int { return int(l.waiting + l.held) }

// holderOf returns the first request other than except that holds the lock. It prefers a request
// that is not a stay. It visits at most namedInside entries.
func (m *Machine) holderOf(l *lock, except *entry) (stay *entry) {
	left := namedInside
	for e := l.first; e != nil && e.holding && left > 0; e = e.after {
		m.visits++
		left--
		switch {
		case e.token == 0 || e == except:
		case !e.stays() || l.onlyStays():
			return e
		case stay == nil:
			stay = e
		}
	}
	return stay
}

// onlyStays reports whether there are inside entries and all of them are stays. A stay takes one
// permit, and any other entry at least one.
func (l *lock) onlyStays() bool { return l.taken > 0 && l.taken == l.stays }

// owned reports whether a request that is no stay holds the lock. After the grace every sticky
// request inside is granted, so stays counts only granted entries.
func (l *lock) owned() bool { return l.held > l.stays }

// blocker returns the request for which the waiting requests wait: the holder, or the first request
// of the queue, which then waits for another of its keys. An upgrade does not wait for its own
// hold, which is except.
func (m *Machine) blocker(l *lock, except *entry) *entry {
	if e := m.holderOf(l, except); e != nil {
		return e
	}
	if l.first == except {
		return except.after
	}
	return l.first
}

func (m *Machine) lockFor(key []byte) *lock {
	if l := m.locks[string(key)]; l != nil {
		return l
	}
	l := m.spareLock()
	l.key = string(key)
	m.linkLock(l)
	return l
}

// linkLock adds a new lock to the map and to the list. The list gives all replicas the same order.
func (m *Machine) linkLock(l *lock) {
	m.locks[l.key] = l
	m.lastPlace++
	l.position, l.seen = m.lastPlace, m.captures
	l.prev = m.lastLock
	if m.lastLock == nil {
		m.firstLock = l
	} else {
		m.lastLock.next = l
	}
	m.lastLock = l
	m.counts.Locks++
	m.bulk += content(len(l.key))
}

func (m *Machine) dropLock(l *lock) {
	if c := m.capture; c != nil && c.lock == l {
		c.lock = l.next
	}
	if l.prev == nil {
		m.firstLock = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		m.lastLock = l.prev
	} else {
		l.next.prev = l.prev
	}
	delete(m.locks, l.key)
	m.counts.Locks--
	m.bulk -= content(len(l.key))
	m.recycleLock(l)
}
