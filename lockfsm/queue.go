package lockfsm

import "slices"

// entry is one live request: it holds its lock or waits for it. It stands in two lists, its lock's queue and its session's entries,
// and in its session's lookup by number.
type entry struct {
	lock         *lock // nil once the entry is gone
	ahead, after *entry
	session      *session
	prev, next   *entry // in the session's list
	number       Number
	rev          Revision // its place: the entry's key is <lock>/<rev>
	token        Token    // 0 while it waits
	sinceUnixMS  int64    // the wall stamp at the grant
}

// lock is the queue of one name. It exists exactly as long as it has an entry. The first entry holds the lock, unless the grace lasts.
type lock struct {
	key         string
	first, last *entry
	waiting     uint32 // entries without a token
	seen        uint32 // see Capture
	place       uint64 // in the list, ascending
	prev, next  *lock
}

// push makes the entry that session s asks for as number n, at the end of l's queue.
func (m *Machine) push(l *lock, s *session, n Number, rev Revision) *entry {
	e := m.spareEntry()
	e.lock, e.session, e.number, e.rev = l, s, n, rev
	m.enqueue(e)
	s.append(e)
	return e
}

// enqueue enters e into its lock's queue and into its session's lookup.
func (m *Machine) enqueue(e *entry) {
	l := e.lock
	if !bug("capture-sees-later-change") {
		m.lockChanges(l)
	}
	e.ahead = l.last
	switch w := l.last; {
	case w == nil:
		l.first, l.last = e, e
	case bug("fifo-broken") && w.ahead != nil: // it passes the last waiter
		e.ahead, e.after, w.ahead.after, w.ahead = w.ahead, w, e, e
	default:
		w.after, l.last = e, e
	}
	e.session.requests[e.number] = e
	m.counts.Entries++
	if e.token == 0 {
		l.waiting++
		m.counts.Waiters++
	}
}

// remove takes e out of everything, in constant time wherever in the queue it stands. Whom that concerns is settled by fire, when
// all removals of the command are done.
func (m *Machine) remove(e *entry) {
	l := e.lock
	m.lockChanges(l)
	if e.ahead == nil {
		l.first = e.after
	} else {
		e.ahead.after = e.after
	}
	if e.after == nil {
		l.last = e.ahead
	} else {
		e.after.ahead = e.ahead
		if e.ahead == nil || !bug("watch-not-moved") {
			m.touch(e.after)
		}
	}
	if e.token == 0 {
		l.waiting--
		m.counts.Waiters--
	}
	m.counts.Entries--
	e.session.unlink(e)
	delete(e.session.requests, e.number)
	if l.first == nil && !bug("name-left-behind") {
		m.dropLock(l)
	}
	m.recycleEntry(e)
}

// touch notes that e's state is about to change. No command touches an entry twice: it removes entries in ascending order of place, so
// nobody ahead of e goes after the one directly ahead of it.
func (m *Machine) touch(e *entry) { m.touched = append(m.touched, e) }

// fire ends a command that removed entries or ended the grace: it goes through the survivors among the touched entries in the order
// of their places, grants those that are now first, and lists them all. The order is part of the rules, since it deals the tokens.
func (m *Machine) fire() {
	live := m.touched[:0]
	for _, e := range m.touched {
		if e.lock != nil {
			live = append(live, e)
		}
	}
	if !bug("map-order-in-apply") {
		slices.SortFunc(live, byPlace)
	}
	for _, e := range live {
		if (e.ahead == nil || bug("predecessor-gone-is-granted")) && m.graceOver {
			m.grant(e)
		}
		if e.token == 0 || !bug("grant-not-fired") {
			m.fired = append(m.fired, e.change())
		}
	}
	clear(m.touched)
	m.touched = emptied(m.touched)
}

// grant gives e its lock, with a token of its own.
func (m *Machine) grant(e *entry) {
	m.lockChanges(e.lock)
	if e.token = Token(m.bump()); bug("token-from-the-clock") {
		e.token = Token(m.wallUnixMS) << revisionBits
	}
	e.sinceUnixMS = m.wallUnixMS
	e.lock.waiting--
	m.counts.Waiters--
}

func (e *entry) change() Change {
	c := Change{Session: e.session.id, Number: e.number, Token: e.token}
	if e.token == 0 && e.ahead != nil {
		c.Watch = e.ahead.rev
	}
	return c
}

func byPlace(a, b *entry) int {
	if a.rev < b.rev {
		return -1
	}
	return 1
}

// entries returns the length of the queue.
func (l *lock) entries() int {
	if l.first.token != 0 {
		return int(l.waiting) + 1
	}
	return int(l.waiting)
}

// lockFor returns the lock of that name and makes it if there is none. Only then is the name copied.
func (m *Machine) lockFor(key []byte) *lock {
	if l := m.locks[string(key)]; l != nil {
		return l
	}
	l := m.spareLock()
	l.key = string(key)
	m.linkLock(l)
	return l
}

// linkLock enters a new lock. The list is there to be walked: a map's order is another one on every replica.
func (m *Machine) linkLock(l *lock) {
	m.locks[l.key] = l
	m.lastPlace++
	l.place, l.seen = m.lastPlace, m.captures
	l.prev = m.lastLock
	if m.lastLock == nil {
		m.firstLock = l
	} else {
		m.lastLock.next = l
	}
	m.lastLock = l
	m.counts.Locks++
}

func (m *Machine) dropLock(l *lock) {
	if c := m.capture; c != nil && c.lock == l {
		c.lock = l.next // l will be another
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
	m.recycleLock(l)
}
