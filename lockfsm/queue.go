package lockfsm

import (
	"cmp"
	"slices"
)

// entry is the place of one live request in one queue. A request for several keys has one entry in
// the queue of each key, with the same revision and token. Only its lead entry, the entry with the
// lowest key, is in the session's list and in its map by number.
type entry struct {
	lock         *lock // nil after the entry has been removed
	ahead, after *entry
	session      *session
	prev, next   *entry
	number       Number
	rev          Revision
	token        Token // 0 while it waits
	sinceUnixMS  int64
	watch        Revision // the Change.Watch that its session last received; only in the lead entry
	permits, of  uint32
	holding      bool   // see lock.boundary
	notice       bool   // it asks for a notice
	told         bool   // it has received the notice
	try          bool   // it waits for the answer of a stay; see stay.go
	extra        *extra // nil for most entries
}

// extra holds the fields that few requests have. All entries of a request share it.
type extra struct {
	entries []*entry // ascending by key; nil for a single key
	owner   Number
	value   []byte // never changed, so results may share it
	delayMS uint32
	stay    *stay // nil unless the request is sticky
}

func (m *Machine) push(s *session, c *view, rev Revision) *entry {
	e := m.pushOne(c.key, s, c, rev)
	if c.hasRest() {
		e.extra = &extra{owner: c.owner, value: copied(c.value), delayMS: c.delayMS}
		if c.sticky {
			e.extra.stay = &stay{}
		}
	}
	for more := c.more; more.left > 0; {
		if e.extra.entries == nil {
			e.extra.entries = append(make([]*entry, 0, 1+more.left), e)
		}
		next := m.pushOne(more.next(), s, c, rev)
		next.extra = e.extra
		e.extra.entries = append(e.extra.entries, next)
	}
	s.join(e)
	m.charge(e)
	return e
}

func (s *session) join(e *entry) {
	s.requests[e.number] = e
	s.append(e)
	s.own(e)
}

func (s *session) leave(e *entry) {
	s.unlink(e)
	s.disown(e)
	delete(s.requests, e.number)
}

func (m *Machine) pushOne(key []byte, s *session, c *view, rev Revision) *entry {
	e := m.spareEntry()
	e.lock, e.session, e.number, e.rev, e.permits, e.of = m.lockFor(key), s, c.Number, rev, c.permits, c.of
	e.notice, e.try = c.notice || c.sticky, c.try
	m.enqueue(e)
	return e
}

func (m *Machine) enqueue(e *entry) {
	l := e.lock
	m.lockChanges(l)
	e.ahead = l.last
	switch w := l.last; {
	case w == nil:
		l.first, l.last = e, e
	default:
		w.after, l.last = e, e
	}
	if e.after == nil {
		l.arrives(e)
	}
	if e.notice && !e.told {
		l.notices++
	}
	m.counts.Entries++
	if e.token == 0 {
		l.waiting++
		m.counts.Waiters++
		if e.try {
			l.tries++
		}
	}
}

// remove removes a request from all lists. This takes constant time for each of its keys, except
// in the case that the comment of discharge describes. After all removals of a command, fire
// computes the effect on other requests.
func (m *Machine) remove(e *entry) {
	if e.token != 0 {
		m.noteEnd(e)
	}
	m.refund(e)
	e.session.leave(e)
	for _, each := range e.all(new([1]*entry)) {
		m.removeOne(each)
	}
}

func (m *Machine) removeOne(e *entry) {
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
		m.touch(e.after)
	}
	m.removed(l, e)
	if e.token == 0 {
		l.waiting--
		m.counts.Waiters--
		if e.try {
			l.tries--
		}
	}
	if e.notice && !e.told {
		l.notices--
	}
	m.counts.Entries--
	if l.first == nil && l.data == nil {
		m.dropLock(l)
	}
	m.recycleEntry(e)
}

func (m *Machine) touch(e *entry) { m.touched = append(m.touched, e.lead()) }

// all returns the entries of e's request. If there is only one, the result is a slice of room, so
// that the call does not allocate.
func (e *entry) all(room *[1]*entry) []*entry {
	if e.extra != nil && e.extra.entries != nil {
		return e.extra.entries
	}
	room[0] = e
	return room[:]
}

func (e *entry) lead() *entry { return e.all(new([1]*entry))[0] }

// fire completes a command that removed entries or ended the grace. It visits the touched requests
// that still exist, grants those that need not wait any more, and appends all changed requests to
// m.fired. It visits them in the order of their places, which is part of the rules, since it
// determines the tokens. At last it ends the requests with Try that are not granted and wait for no
// stay.
func (m *Machine) fire() {
	m.grantTouched()
	for len(m.contested) > 0 {
		m.endTries()
		m.grantTouched()
	}
}

func (m *Machine) grantTouched() {
	live := m.touched[:0]
	for _, e := range m.touched {
		if e.lock != nil {
			live = append(live, e)
		}
	}
	slices.SortFunc(live, byPlace)
	for _, e := range live {
		watch := e.watches()
		switch {
		case e.token == 0 && watch == 0 && m.graceOver:
			m.grant(e)
		case e.token != 0 || watch == e.watch: // already visited, or unchanged
			continue
		default:
			e.watch = watch
		}
		m.fired = append(m.fired, e.change())
	}
	clear(m.touched)
	m.touched = emptied(m.touched)
}

// watches returns the place of the entry that e's request waits for. It is the entry directly ahead
// of the request in the first queue in which the request must wait. Zero means that only the grace
// delays the request.
func (e *entry) watches() Revision {
	if stuck := e.stuck(); stuck != nil {
		return stuck.ahead.rev
	}
	return 0
}

// Of the entries of e's request, stuck returns the first one that is not inside, or nil.
func (e *entry) stuck() *entry {
	for _, each := range e.all(new([1]*entry)) {
		if !each.holding {
			return each
		}
	}
	return nil
}

func (e *entry) places() uint32 { return uint32(len(e.all(new([1]*entry)))) }

func (e *entry) value() []byte {
	if e.extra == nil {
		return nil
	}
	return e.extra.value
}

func (m *Machine) grant(e *entry) {
	token := Token(m.bump())
	m.reserve(e)
	e.watch = 0
	wanted := false
	for _, each := range e.all(new([1]*entry)) {
		m.grantOne(each, token)
		wanted = wanted || each.lock.boundary != nil
	}
	if e.notice && wanted {
		m.markNoticed(e)
		m.askFromBirth(e)
	}
	m.noteGrant(e)
}

func (m *Machine) grantOne(e *entry, token Token) {
	m.lockChanges(e.lock)
	e.token, e.sinceUnixMS = token, m.wallUnixMS
	e.session.held++
	e.lock.waiting--
	m.counts.Waiters--
	if e.try {
		e.try = false
		e.lock.tries--
	}
	if e.lock.tries > 0 && e.lock.boundary != nil {
		m.contested = append(m.contested, e.lock)
	}
}

func (e *entry) change() Change {
	c := Change{Session: e.session.id, Number: e.number, Token: e.token, Watch: e.watch, Wanted: e.told}
	if s := e.stay(); s != nil {
		c.Last, c.Asked = s.last, s.asked
	}
	return c
}

func byPlace(a, b *entry) int { return cmp.Compare(a.rev, b.rev) }
