package lockfsm

// sessionTable has all sessions.
type sessionTable struct {
	byID        map[SessionID]*session
	byNonce     map[Nonce]*session // those that are not gone
	first, last *session           // ascending by ID
	rights      rightsTable
	recent      *session // the session of the last command that changed its requests
}

func newSessionTable() sessionTable {
	return sessionTable{byID: map[SessionID]*session{}, byNonce: map[Nonce]*session{}, rights: rightsTable{}}
}

// This method returns the session that c names. It returns nil and the reason if the session does
// not exist or is gone, or if c does not have the epoch of the present attachment.
func (t *sessionTable) of(c *view) (*session, Code) {
	s := t.recent // commands of one session often follow each other
	if s == nil || s.id != c.Session {
		if s = t.byID[c.Session]; s == nil {
			return nil, NoSession
		}
		t.recent = s
	}
	switch {
	case s.gone:
		return nil, NoSession
	case c.Epoch != s.epoch:
		return nil, Stale
	}
	return s, Done
}

// link adds a new session.
func (t *sessionTable) link(s *session) {
	t.byID[s.id] = s
	if !s.gone {
		t.byNonce[s.nonce] = s
	}
	s.prev = t.last
	if t.last == nil {
		t.first = s
	} else {
		t.last.after = s
	}
	t.last = s
}

// expires marks a session as gone.
func (t *sessionTable) expires(s *session) {
	s.gone = true
	delete(t.byNonce, s.nonce)
}

// unlink does not clear the links of s, because a capture may continue from s.
func (t *sessionTable) unlink(s *session) {
	if s.prev == nil {
		t.first = s.after
	} else {
		s.prev.after = s.after
	}
	if s.after == nil {
		t.last = s.prev
	} else {
		s.after.prev = s.prev
	}
	delete(t.byID, s.id)
	t.recent = nil
	if !s.gone {
		delete(t.byNonce, s.nonce)
	}
	t.rights.leave(s.rights)
}

// Sessions lists all sessions in ascending order of ID.
func (m *Machine) Sessions() []SessionInfo {
	all := make([]SessionInfo, 0, m.counts.Sessions)
	for s := m.sessions.first; s != nil; s = s.after {
		all = append(all, s.info())
	}
	return all
}

// SessionCursor is a place in the list of all sessions, from which a walk continues. The zero value
// is the beginning. To begin after a session, set both fields to its ID.
type SessionCursor struct {
	At   SessionID
	Past SessionID // if session At has ended, the walk begins anew and skips the sessions up to this one
}

// WalkSessions lists the sessions after the cursor c, the oldest first, without their nonces. The
// parameter most is the maximum number of listed sessions, and budget is the maximum number of
// visited sessions. If more is true, there may be further sessions after next. A session that
// exists during the whole walk is listed once.
func (m *Machine) WalkSessions(c SessionCursor, most, budget int) (all []SessionInfo, next SessionCursor, more bool) {
	s := m.sessions.first
	if at := m.sessions.byID[c.At]; at != nil && at.id <= c.Past {
		s = at.after
	}
	room := inspectBytes
	all = make([]SessionInfo, 0, min(most, m.counts.Sessions))
	for next = c; s != nil; s = s.after {
		if budget--; budget < 0 || len(all) == most || room <= 0 {
			return all, next, true
		}
		m.visit(1)
		next.At = s.id
		if s.id <= c.Past {
			continue
		}
		next.Past = s.id
		info := s.info()
		info.Nonce = Nonce{}
		info.Held, info.Waiting = int(s.held), int(s.entries-s.held)
		room -= len(info.Record)
		all = append(all, info)
	}
	return all, next, false
}

// Session returns the session with the given ID, if it exists and is not gone.
func (m *Machine) Session(id SessionID) (SessionInfo, bool) {
	if s := m.sessions.byID[id]; s != nil && !s.gone {
		return s.info(), true
	}
	return SessionInfo{}, false
}

func (m *Machine) linkSession(s *session) {
	s.charged = s.ownCharge()
	s.seen = m.captures.last
	m.sessions.link(s)
	m.digest.add(s.hash())
	m.countSession(s, 1)
}

func (m *Machine) unlinkSession(s *session) {
	m.captures.sessionChanges(s)
	m.sessions.unlink(s)
	m.digest.drop(s.hash())
	m.countSession(s, -1)
}

// use records that the number n is used, and reports whether it was unused before. The first
// command with a number uses the number up, even if the command is refused, or if it ends a
// request whose Acquire has not arrived yet.
func (m *Machine) use(s *session, n Number) (Revision, bool) {
	if n < s.next {
		return 0, false
	}
	m.captures.sessionChanges(s)
	s.next = n + 1
	return m.bump(), true
}

func (m *Machine) dismiss(s *session) {
	if s.gone && s.requests.Len() == 0 {
		m.unlinkSession(s)
	}
}
