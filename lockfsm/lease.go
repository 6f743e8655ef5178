package lockfsm

import "time"

func (m *Machine) open(c *view, res *Result) {
	s := m.sessions.byNonce[c.nonce]
	if s == nil {
		if uint64(m.counts.Sessions) >= uint64(m.charter.Limits.Sessions) {
			res.Code = TooManySessions
			return
		}
		if m.noRoomToOpen(c) {
			res.Code, res.Budget = OverGroupBudget, m.charter.Limits.GroupBytes
			return
		}
		s = &session{eventHolder: &eventHolder{SessionID(m.bump()), copied(c.record)}, nonce: c.nonce, opener: c.opener,
			life: c.life, rights: m.sessions.rights.share(c.rights), next: 1, ttl: m.charter.SessionTTL}
		if c.ttl > 0 {
			s.ttl = min(c.ttl, m.charter.SessionTTL)
		}
		m.linkSession(s)
	}
	if s.opener != c.opener {
		res.Code = NoSession
		return
	}
	res.Code, res.Session, res.TTL = Done, s.id, s.ttl
}

// attach begins a new attachment and ends the requests that the command does not name. The command
// must have the nonce of the session's Open, because session IDs are not secret. The nonce does not
// prove an identity either, so the leader checks the Opener.
func (m *Machine) attach(c *view, res *Result) {
	s := m.sessions.byID[c.Session]
	switch {
	case s == nil || s.gone || c.nonce != s.nonce:
		res.Code = NoSession
		return
	case c.Epoch <= s.epoch:
		res.Code = Stale
		return
	}
	m.captures.sessionChanges(s)
	m.bump()
	s.epoch = c.Epoch
	s.next = max(s.next, c.Number)
	live, named := c.live, Range{}
	for e := s.firstRequest(); e != nil; {
		number := e.number
		for live.left > 0 && named.Last < e.number {
			named = live.next()
		}
		unnamed := e.number < named.First || e.number > named.Last
		if unnamed || e.upgrades() && e.upgraded() == nil { // the hold has a lower number
			m.remove(e)
		}
		e = s.requestAfter(number)
	}
	m.fire()
	if s.firstRequest() != nil {
		res.States = m.answer.list(s)
	}
	res.Code, res.Forced = Done, m.history.audit.forced(s.id)
}

func (m *Machine) leaving(c *view) Code {
	s, code := m.sessions.of(c)
	if s != nil && !s.leaving {
		m.captures.sessionChanges(s)
		m.bump()
		s.leaving = true
	}
	return code
}

func (m *Machine) close(c *view) Code {
	s, code := m.sessions.of(c)
	if s != nil {
		m.history.setCause(Closed, nil)
		m.end(s)
	}
	return code
}

// expire ends a session whose TTL has run out at a leader. The state does not contain renewals, so
// the machine checks the term: the leader of that term acknowledges no renewal after it has
// proposed the Expire.
//
// Holds with a delay stay, and the session becomes gone. A cause ends only a session that is not
// gone yet: the leader counts the delays of a gone one, and a further Expire says that they have
// passed.
func (m *Machine) expire(term uint64, c *view, res *Result) {
	s := m.sessions.byID[c.Session]
	switch {
	case s == nil:
		res.Code = NoSession
		return
	case c.term != term:
		res.Code = Stale
		return
	case s.gone && c.cause != 0:
		res.Code = Finished
		return
	}
	res.Code = Done
	m.captures.sessionChanges(s)
	m.bump()
	m.history.setCause(Expired, nil)
	if c.cause != 0 {
		res.Evicted = m.answer.evict(Eviction{Session: s.id, Record: s.record, By: copied(c.record),
			Reason: copied(c.value), Cause: c.cause})
		m.history.setCause(c.cause, &How{By: res.Evicted.By, Reason: res.Evicted.Reason})
	}
	counted := time.Duration(0)
	if s.gone {
		counted = s.ttl
	}
	for e := s.firstRequest(); e != nil; {
		number := e.number
		if e.delay() <= counted {
			m.remove(e)
		} else if !s.gone {
			m.noteLeft(e, m.history.cause)
		}
		e = s.requestAfter(number)
	}
	if s.firstRequest() == nil {
		m.unlinkSession(s)
	} else {
		if !s.gone {
			m.sessions.expires(s)
		}
		s.ttl = s.delay()
		res.TTL = s.ttl - counted
	}
	m.fire()
}

// end removes all requests of a session before it grants anything, so that none of them is granted.
func (m *Machine) end(s *session) {
	m.bump()
	for s.firstRequest() != nil {
		m.remove(s.firstRequest())
	}
	m.unlinkSession(s)
	m.fire()
}
