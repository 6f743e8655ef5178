package lockfsm

import (
	"slices"
	"time"
)

// session is the session of one opener. Its requests are in ascending order of number.
type session struct {
	*eventHolder
	nonce       Nonce
	opener      Opener
	rights      *sharedRights // nil for a full instance
	epoch       Epoch
	next        Number        // every number below it is live or finished; starts at 1
	ttl         time.Duration // for a gone session: the delay that the leader measures now
	leaving     bool
	gone        bool // it has expired; only holds with a delay remain
	first, last *entry
	requests    map[Number]*entry
	owned       map[Number]siblings // requests by their owner; nil until a request has an owner
	unsearched  sessionSearches
	entries     uint32
	held        uint32 // the number of keys that it holds
	charged     uint64
	seen        uint32
	prev, after *session
}

// SessionInfo describes a session to the leader and to operators.
type SessionInfo struct {
	ID      SessionID
	Nonce   Nonce
	Opener  Opener `json:"-"` // the only opener that may use the session
	Epoch   Epoch
	TTL     time.Duration
	Leaving bool
	// Gone reports that the session has expired and accepts no commands. Its remaining locks stay
	// taken for TTL, or for their own delay if it is longer. The Nonce of a gone session is zero.
	Gone bool
	// Record is shared with the machine and must not be changed. It stays valid.
	Record []byte

	// Held and Waiting count the keys that the session holds and waits for. Only WalkSessions sets
	// them.
	Held, Waiting int
}

// Sessions lists all sessions in ascending order of ID.
func (m *Machine) Sessions() []SessionInfo {
	all := make([]SessionInfo, 0, m.counts.Sessions)
	for s := m.firstSession; s != nil; s = s.after {
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
	s := m.firstSession
	if at := m.sessions[c.At]; at != nil && at.id <= c.Past {
		s = at.after
	}
	room := inspectBytes
	all = make([]SessionInfo, 0, min(most, m.counts.Sessions))
	for next = c; s != nil; s = s.after {
		if budget--; budget < 0 || len(all) == most || room <= 0 {
			return all, next, true
		}
		m.visits++
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
	if s := m.sessions[id]; s != nil && !s.gone {
		return s.info(), true
	}
	return SessionInfo{}, false
}

func (s *session) info() SessionInfo {
	if s.gone {
		return SessionInfo{ID: s.id, Epoch: s.epoch, TTL: s.ttl, Leaving: s.leaving, Record: s.record,
			Opener: s.opener, Gone: true}
	}
	return SessionInfo{ID: s.id, Nonce: s.nonce, Epoch: s.epoch, TTL: s.ttl, Leaving: s.leaving, Record: s.record,
		Opener: s.opener}
}

func (m *Machine) open(c *view, res *Result) {
	s := m.nonces[c.nonce]
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
			rights: m.rights.share(c.rights), next: 1, ttl: m.charter.SessionTTL}
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

// This method returns the session that c names. It returns nil and the reason if the session does
// not exist or is gone, or if c does not have the epoch of the present attachment.
func (m *Machine) of(c *view) (*session, Code) {
	s := m.recent // commands of one session often follow each other
	if s == nil || s.id != c.Session {
		if s = m.sessions[c.Session]; s == nil {
			return nil, NoSession
		}
		m.recent = s
	}
	switch {
	case s.gone:
		return nil, NoSession
	case c.Epoch != s.epoch:
		return nil, Stale
	}
	return s, Done
}

// attach begins a new attachment and ends the requests that the command does not name. The command
// must have the nonce of the session's Open, because session IDs are not secret. The nonce does not
// prove an identity either, so the leader checks the Opener.
func (m *Machine) attach(c *view, res *Result) {
	s := m.sessions[c.Session]
	switch {
	case s == nil || s.gone || c.nonce != s.nonce:
		res.Code = NoSession
		return
	case c.Epoch <= s.epoch:
		res.Code = Stale
		return
	}
	m.sessionChanges(s)
	m.bump()
	s.epoch = c.Epoch
	s.next = max(s.next, c.Number)
	live, named := c.live, Range{}
	for e := s.first; e != nil; {
		next := e.next
		for live.left > 0 && named.Last < e.number {
			named = live.next()
		}
		unnamed := e.number < named.First || e.number > named.Last
		if unnamed || e.upgrades() && e.upgraded() == nil { // the hold has a lower number
			m.remove(e)
		}
		e = next
	}
	m.fire()
	m.states = slices.Grow(m.states, len(s.requests))
	for e := s.first; e != nil; e = e.next {
		m.states = append(m.states, e.change())
	}
	res.Code, res.Forced = Done, m.audit.forced(s.id)
}

func (m *Machine) leaving(c *view) Code {
	s, code := m.of(c)
	if s != nil && !s.leaving {
		m.sessionChanges(s)
		m.bump()
		s.leaving = true
	}
	return code
}

func (m *Machine) close(c *view) Code {
	s, code := m.of(c)
	if s != nil {
		m.setCause(Closed, nil)
		m.end(s)
	}
	return code
}

// expire ends a session whose TTL has run out at a leader. The state does not contain renewals, so
// the machine checks the term: the leader of that term acknowledges no renewal after it has
// proposed the Expire.
//
// Holds with a delay stay, and the session becomes gone.
func (m *Machine) expire(term uint64, c *view, res *Result) {
	s := m.sessions[c.Session]
	switch {
	case s == nil:
		res.Code = NoSession
		return
	case c.term != term:
		res.Code = Stale
		return
	}
	res.Code = Done
	m.sessionChanges(s)
	m.bump()
	m.setCause(Expired, nil)
	counted := time.Duration(0)
	if s.gone {
		counted = s.ttl
	}
	for e := s.first; e != nil; {
		next := e.next
		if e.delay() <= counted {
			m.remove(e)
		} else if !s.gone {
			m.noteLeft(e, Expired)
		}
		e = next
	}
	if s.first == nil {
		m.unlinkSession(s)
	} else {
		if !s.gone {
			s.gone = true
			delete(m.nonces, s.nonce)
		}
		s.ttl = s.delay()
		res.TTL = s.ttl - counted
	}
	m.fire()
}

func (s *session) delay() time.Duration {
	shortest := MaxDelay
	for e := s.first; e != nil; e = e.next {
		shortest = min(shortest, e.delay())
	}
	return shortest
}

func (e *entry) delay() time.Duration {
	if !e.delayed() {
		return 0
	}
	return time.Duration(e.extra.delayMS) * time.Millisecond
}

func (e *entry) delayed() bool { return e.token != 0 && e.extra != nil && e.extra.delayMS != 0 }

// end removes all requests of a session before it grants anything, so that none of them is granted.
func (m *Machine) end(s *session) {
	m.bump()
	for s.first != nil {
		m.remove(s.first)
	}
	m.unlinkSession(s)
	m.fire()
}

func (m *Machine) dismiss(s *session) {
	if s.gone && s.first == nil {
		m.unlinkSession(s)
	}
}

func (m *Machine) linkSession(s *session) {
	m.sessions[s.id] = s
	if !s.gone {
		m.nonces[s.nonce] = s
	}
	s.requests = map[Number]*entry{}
	s.charged = s.ownCharge()
	m.bulk += s.ownContent()
	s.seen = m.captures
	s.prev = m.lastSession
	if m.lastSession == nil {
		m.firstSession = s
	} else {
		m.lastSession.after = s
	}
	m.lastSession = s
	m.sum += s.hash()
	m.counts.Sessions++
}

// unlinkSession does not clear the links of s, because a capture may continue from s.
func (m *Machine) unlinkSession(s *session) {
	m.sessionChanges(s)
	if s.prev == nil {
		m.firstSession = s.after
	} else {
		s.prev.after = s.after
	}
	if s.after == nil {
		m.lastSession = s.prev
	} else {
		s.after.prev = s.prev
	}
	delete(m.sessions, s.id)
	m.recent = nil
	if !s.gone {
		delete(m.nonces, s.nonce)
	}
	m.sum -= s.hash()
	m.counts.Sessions--
	m.bulk -= s.ownContent()
	m.rights.leave(s.rights)
}

func (s *session) append(e *entry) {
	e.prev = s.last
	if s.last == nil {
		s.first = e
	} else {
		s.last.next = e
	}
	s.last = e
	s.entries += e.places()
	if e.token != 0 { // it was restored from a snapshot, or moved from another session
		s.held += e.places()
	}
}

func (s *session) unlink(e *entry) {
	if e.prev == nil {
		s.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		s.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil // e may enter another session's list
	s.entries -= e.places()
	if e.token != 0 {
		s.held -= e.places()
	}
}

// siblings is the list of a session's requests with the same owner, in ascending order of number.
// An upgrade with Inner is listed for that request instead, because its owner finds it in the
// queue.
type siblings struct{ first, last *entry }

func (s *session) own(e *entry) {
	if e.extra == nil || e.extra.owner == 0 {
		return
	}
	if s.owned == nil {
		s.owned = map[Number]siblings{}
	}
	all := s.owned[e.extra.listedFor()]
	if e.extra.elder = all.last; all.first == nil {
		all.first = e
		e.ownsFirst(1)
	} else {
		all.last.extra.younger = e
	}
	all.last = e
	s.owned[e.extra.listedFor()] = all
}

func (s *session) disown(e *entry) {
	if e.extra == nil || e.extra.owner == 0 {
		return
	}
	all, x := s.owned[e.extra.listedFor()], e.extra
	if x.elder == nil {
		all.first = x.younger
	} else {
		x.elder.extra.younger = x.younger
	}
	if x.younger == nil {
		all.last = x.elder
	} else {
		x.younger.extra.elder = x.elder
	}
	if x.elder, x.younger = nil, nil; all.first == nil {
		delete(s.owned, x.listedFor())
		e.ownsFirst(-1)
	} else {
		s.owned[x.listedFor()] = all
	}
}
