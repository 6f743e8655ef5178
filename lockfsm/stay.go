package lockfsm

import "encoding/binary"

// This file contains stays, an addition of version 3 of the rules.
//
// A sticky request is an ordinary exclusive request. Once granted it is a stay: its session keeps
// it after its caller has unlocked, and grants the lock to its next callers itself. The machine
// does not know whether a caller holds the lock at present. It therefore does three things for a
// stay:
//
//   - The grant reserves tokens, which only the session of the stay gives to callers. The token of
//     the grant identifies the stay, and no caller gets it. Later grants of any key have higher
//     tokens.
//   - A waiting request causes a notice, as for any request with Notice. The session then releases
//     the stay soon.
//   - A request with Try waits for the answer of the session, which is Release or [InUse]. So Held
//     is only reported while a caller held the lock.

// StickySince is the rules version that adds stays.
const StickySince = 3

// StayTokens is the number of tokens that the grant of a stay reserves.
const StayTokens = 1024

type stay struct {
	last  Token    // the last reserved token; zero while the request waits, and if none could be reserved
	asked Revision // see Change.Asked
}

func (v *view) acquireFlags() uint64 {
	if v.Rules >= StickySince {
		return acquireFlags | stickyFlag
	}
	return acquireFlags
}

func (r *reader) inUse(v *view) {
	if v.Rules < StickySince {
		r.fail("kind")
		return
	}
	v.revision = Revision(r.positive(uint64(maxRevision), "place"))
	v.token = Token(r.positive(uint64(maxRevision), "token"))
}

func (e *entry) stay() *stay {
	if e.extra == nil {
		return nil
	}
	return e.extra.stay
}

func (e *entry) sticky() bool { return e.stay() != nil }

// stays reports whether e is a granted stay with tokens for callers.
func (e *entry) stays() bool { return e.sticky() && e.extra.stay.last != 0 }

// reserve reserves tokens for a sticky request that is being granted. It never lifts the revision
// above the revision that a group would begin with if it were founded at the last wall stamp.
// Otherwise the tokens of a group that is founded soon could be lower. If no tokens can be
// reserved, the request is granted like one that is not sticky.
func (m *Machine) reserve(e *entry) {
	if s := e.stay(); s != nil && m.rev+StayTokens <= Revision(min(m.wallUnixMS, maxFoundedUnixMS))<<revisionBits {
		m.rev += StayTokens
		s.last = Token(m.rev)
	}
}

// keeps reports whether a request with Try must wait for the answer of a stay: a stay is in its
// way, and only requests with Try wait.
func (l *lock) keeps() bool { return l.first != nil && l.first.stays() && l.tries == l.waiting }

// ask records that e, a request with Try, waits for the answer of h. It reports whether h is a
// stay that must be told so.
func (m *Machine) ask(h, e *entry) bool {
	if !e.try || !h.stays() {
		return false
	}
	m.lockChanges(h.lock)
	h.extra.stay.asked = e.rev
	return true
}

// askFromBirth is like ask for a stay that is granted while requests with Try wait.
func (m *Machine) askFromBirth(e *entry) {
	if e.stays() && e.lock.tries > 0 {
		e.extra.stay.asked = e.lock.last.rev
	}
}

// endTries ends the requests with Try that wait for a lock that was just granted, unless it was
// granted to a stay.
func (m *Machine) endTries() {
	for _, l := range m.contested {
		if l.first == nil || l.first.stays() {
			continue
		}
		if h := l.holder(); h != nil {
			holder := h.describe()
			m.endTriesOf(l, &holder, maxRevision)
		}
	}
	clear(m.contested)
	m.contested = emptied(m.contested)
}

// endTriesOf ends the requests with Try that wait in the queue of l at places up to upTo.
func (m *Machine) endTriesOf(l *lock, holder *Holder, upTo Revision) {
	for e := l.boundary; e != nil && e.rev <= upTo; {
		next := e.after
		if e.try {
			h := *holder
			h.Waiters = int(l.waiting)
			if e.places() > 1 {
				h.Key = l.key
			}
			m.ended = append(m.ended, Change{Session: e.session.id, Number: e.number, Held: &h})
			m.remove(e.lead())
		}
		e = next
	}
}

// inUse ends the requests with Try that an answer concerns.
func (m *Machine) inUse(c *view) Code {
	s, code := m.of(c)
	if s == nil {
		return code
	}
	if _, fresh := m.use(s, c.Number); fresh {
		return Finished
	}
	e := s.requests[c.Number]
	if e == nil || !e.stays() || c.token <= e.token || e.extra.stay.last < c.token {
		return Finished
	}
	if e.extra.stay.asked == 0 {
		return Done
	}
	m.bump()
	m.lockChanges(e.lock)
	if e.extra.stay.asked <= c.revision {
		e.extra.stay.asked = 0
	}
	holder := e.describe()
	holder.Token = c.token
	m.endTriesOf(e.lock, &holder, c.revision)
	m.fire()
	return Done
}

// reserved reports whether a stay of the key has reserved the token.
func (m *Machine) reserved(key []byte, token Token) bool {
	l := m.locks[string(key)]
	return l != nil && l.first != nil && l.first.stays() && l.first.token < token && token <= l.first.extra.stay.last
}

// Reserved reports whether a stay of the key has reserved the token. Only the session of the stay
// knows whether a caller holds the lock with that token.
func (m *Machine) Reserved(key string, token Token) bool { return m.reserved([]byte(key), token) }

func (m *Machine) entryFlags() byte {
	if m.charter.Rules >= StickySince {
		return entryFlags | entryRules3Flag
	}
	return entryFlags
}

func (e *entry) appendStay(b []byte) []byte {
	s := e.stay()
	switch {
	case e.try && s == nil:
		return append(b, entryTryFlag)
	case s == nil:
		return b
	case e.try:
		return append(b, entryTryFlag|entryStickyFlag)
	case e.token == 0:
		return append(b, entryStickyFlag)
	}
	b = append(b, entryStickyFlag)
	if s.last == 0 {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(s.last-e.token))
	if s.asked == 0 {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, uint64(s.asked-e.rev))
}

// stay reads the fields of version 3.
func (r *locksReader) stay(e *entry, flags byte) {
	if flags&entryRules3Flag == 0 {
		return
	}
	more := r.flags(entryStickyFlag|entryTryFlag, "entry")
	e.try = more&entryTryFlag != 0
	if more == 0 || e.try && e.token != 0 {
		r.fail("entry")
	}
	if more&entryStickyFlag == 0 || r.fault != "" {
		return
	}
	if e.extra != nil || e.permits != 0 || !e.notice {
		r.fail("entry")
		return
	}
	e.extra = &extra{stay: &stay{}}
	if e.token == 0 {
		return
	}
	if last := r.sum(uint64(e.token), uint64(r.m.rev), "last token"); last != uint64(e.token) {
		e.extra.stay.last = Token(last)
		if asked := r.sum(uint64(e.rev), uint64(r.m.rev), "asked"); asked != uint64(e.rev) {
			e.extra.stay.asked = Revision(asked)
		}
	}
}
