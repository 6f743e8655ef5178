package lockfsm

func (m *Machine) push(s *session, c *view, rev Revision) *entry {
	var x *extra
	if c.hasRest() {
		x = &extra{owner: c.owner, inner: c.inner, value: copied(c.value), delayMS: c.delayMS, upgrades: c.upgrades}
		if c.sticky {
			x.stay = &stay{}
		}
	}
	l := c.found
	if l == nil || c.more.left > 0 {
		l = m.lockFor(c.key)
	}
	e := m.pushOne(l, c.first(), c.permits, c.of, s, c, rev, x)
	for more := c.more; more.left > 0; {
		if x.entries == nil {
			x.entries = append(make([]*entry, 0, 1+more.left), e)
		}
		permits, of := more.terms(c)
		mode := more.mode(c)
		x.entries = append(x.entries, m.pushOne(m.lockFor(more.next()), mode, permits, of, s, c, rev, x))
	}
	s.join(e)
	m.charge(e)
	return e
}

func (m *Machine) pushOne(l *lock, mode Mode, permits, of uint32, s *session, c *view, rev Revision,
	x *extra) *entry {
	e := m.spares.spareEntry()
	e.lock, e.session, e.number, e.rev = l, s, c.Number, rev
	e.notice, e.try, e.extra = c.notice || c.sticky, c.try, x
	e.setMode(mode, permits, of)
	m.enqueue(e)
	return e
}

func (m *Machine) enqueue(e *entry) {
	l := e.lock
	m.captures.lockChanges(l)
	m.own(l)
	e.ahead = l.last
	switch w := l.last; {
	case w == nil:
		l.first, l.last = e, e
	case e.upgrades() && l.boundary != nil:
		e.after, e.ahead = l.boundary, l.boundary.ahead
		e.after.ahead, e.ahead.after = e, e
	default:
		w.after, l.last = e, e
	}
	l.arrives(e, &m.effort)
	m.digest.add(e.hash())
	m.countEntry(e, 1)
	switch {
	case e.token != 0: // it is restored from a snapshot
		l.held++
	default:
		l.waiting++
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
	m.unsearched.drop(e)
	e.session.leave(e)
	for _, each := range e.all(new([1]*entry)) {
		m.removeOne(each)
	}
}

func (m *Machine) removeOne(e *entry) {
	l := e.lock
	m.captures.lockChanges(l)
	if l.shared {
		l.first = nil // e is the only entry
	} else {
		m.leaveQueue(l, e)
	}
	m.digest.drop(e.hash())
	m.countEntry(e, -1)
	if l.first == nil && l.data == nil {
		m.dropLock(l)
	}
	m.spares.recycleEntry(e)
}

func (m *Machine) leaveQueue(l *lock, e *entry) {
	if e.ahead == nil {
		l.first = e.after
	} else {
		e.ahead.after = e.after
	}
	if e.after == nil {
		l.last = e.ahead
	} else {
		e.after.ahead = e.ahead
		m.ripples.touch(e.after)
	}
	if l.boundary != nil && l.boundary.upgrades() {
		m.ripples.touch(l.boundary) // it may have watched e over its own hold
	}
	m.removed(l, e)
	switch {
	case e.token != 0:
		l.held--
	default:
		l.waiting--
		if e.try {
			l.tries--
		}
	}
}

// This method must be called after e has left l's queue. It admits the entries that fit now.
func (m *Machine) removed(l *lock, e *entry) {
	switch {
	case e.holding:
		l.discharge(e, &m.effort)
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
		l.admit(l.boundary, &m.effort)
		m.ripples.touch(l.boundary)
		l.boundary = l.boundary.after
	}
}

// removeHold removes a request together with its upgrade.
func (m *Machine) removeHold(e *entry) {
	if u := e.upgrade(); u != nil {
		m.remove(u)
	}
	m.remove(e)
}
