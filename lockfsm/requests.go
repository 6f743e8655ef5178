package lockfsm

// use marks number n as used and reports whether it was new. A number is used up by the first command that carries it, also by one
// that is refused or that gives up a request which never arrived; whatever arrives later under it finds it finished.
func (m *Machine) use(s *session, n Number) (Revision, bool) {
	if n < s.next {
		return 0, false
	}
	m.sessionChanges(s)
	s.next = n + 1
	return m.bump(), true
}

func (m *Machine) acquire(c *view, res *Result) {
	s, code := m.of(c)
	if s == nil {
		res.Code = code
		return
	}
	rev, fresh := m.use(s, c.Number)
	if bug("no-dedup") && !fresh && s.requests[c.Number] == nil {
		rev, fresh = m.bump(), true
	}
	if !fresh {
		e := s.requests[c.Number]
		if e == nil {
			res.Code = Finished
			return
		}
		m.report(e, res)
		return
	}
	if res.Code = m.refuse(s, c); res.Code != 0 {
		if res.Code == Held {
			m.name(m.locks[string(c.key)], res)
		}
		return
	}
	e := m.push(m.lockFor(c.key), s, c.Number, rev)
	if e.ahead == nil && m.graceOver {
		m.grant(e)
	}
	m.report(e, res)
}

// refuse says why a new request is not taken in, or 0.
func (m *Machine) refuse(s *session, c *view) Code {
	limits := &m.charter.Limits
	if !validKey(c.key, limits.KeyBytes) {
		return BadKey
	}
	if s.entries >= limits.EntriesPerSession {
		return TooManyEntries
	}
	l := m.locks[string(c.key)]
	switch {
	case c.try && !m.graceOver:
		return InGrace
	case l == nil:
		return 0
	case c.try:
		return Held
	case uint64(l.waiting) >= uint64(limits.WaitersPerLock):
		return QueueFull
	}
	return 0
}

// report writes the present state of a request into its result.
func (m *Machine) report(e *entry, res *Result) {
	c := e.change()
	res.Code, res.Token, res.Watch = Granted, c.Token, c.Watch
	if e.token == 0 {
		res.Code = Waiting
		m.name(e.lock, res)
	}
}

// name writes into a result who holds the lock, if anybody does.
func (m *Machine) name(l *lock, res *Result) {
	if l.first.token != 0 {
		m.holder = l.holder()
		res.Holder = &m.holder
	}
}

func (l *lock) holder() Holder {
	e := l.first
	return Holder{Session: e.session.id, Record: e.session.record, Token: e.token, SinceUnixMS: e.sinceUnixMS, Waiters: int(l.waiting)}
}

// release ends one request, whether it holds or waits: it is named by its number, so a repeated or late one can never hit the same
// session's next hold of the same lock.
func (m *Machine) release(c *view) Code {
	s, code := m.of(c)
	if s == nil {
		return code
	}
	if bug("cancel-ignored") && c.Kind == Cancel || bug("early-cancel-forgotten") && c.Number >= s.next {
		return Done
	}
	if _, fresh := m.use(s, c.Number); fresh {
		return Finished
	}
	e := s.requests[c.Number]
	if e == nil && bug("release-frees-another") {
		e = s.last
	}
	if bug("full-queue-keeps-all") && e != nil && uint64(e.lock.waiting) >= uint64(m.charter.Limits.WaitersPerLock) {
		return QueueFull
	}
	if e == nil {
		return Finished
	}
	m.bump()
	m.remove(e)
	m.fire()
	return Done
}
