package lockfsm

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

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
//   - A request with Try waits for the answer of the session, which is Release or [InUse], if only
//     such requests wait. So a stay alone, without a caller, does not cause Held. If another
//     request waits behind the stay, the lock is not free in any case, and the result is Held.

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

// endTries ends the requests with Try that wait in the contested queues and do not wait for a stay.
// It reports whether it has ended one. It visits them in the order of their places. The end of one
// of them can make room for the next one, which then goes on.
func (m *Machine) endTries() bool {
	var all []*entry
	for _, l := range m.contested {
		for e := l.boundary; e != nil && l.tries > 0 && !l.first.stays(); e = e.after {
			if e.try {
				all = append(all, e)
			}
		}
	}
	clear(m.contested)
	m.contested = emptied(m.contested)
	slices.SortFunc(all, func(a, b *entry) int {
		return cmp.Or(byPlace(a, b), strings.Compare(a.lock.key, b.lock.key))
	})
	for _, e := range all {
		if e.lock != nil && !e.holding {
			m.endTry(e, e.lock.blocker().describe())
		}
	}
	return len(all) > 0
}

// endTry ends the request of e, because e waits for the given holder.
func (m *Machine) endTry(e *entry, holder Holder) {
	holder.Waiters-- // e does not wait any more
	if e.places() > 1 {
		holder.Key = e.lock.key
	}
	m.ended = append(m.ended, Change{Session: e.session.id, Number: e.number, Held: &holder})
	m.remove(e.lead())
}

// inUse ends the requests with Try that an answer concerns: those at places up to the place that
// the answer names. The session may not have heard of a later request when it answered. Requests
// with Try are always before the other waiting requests.
func (m *Machine) inUse(c *view) Code {
	owner, code := m.of(c)
	if owner == nil {
		return code
	}
	if _, fresh := m.use(owner, c.Number); fresh {
		return Finished
	}
	e := owner.requests[c.Number]
	if e == nil || !e.stays() || c.token <= e.token || e.extra.stay.last < c.token {
		return Finished
	}
	s := e.stay()
	concerns := func(waits *entry) bool { return waits != nil && waits.try && waits.rev <= c.revision }
	if s.asked == 0 || s.asked > c.revision && !concerns(e.after) {
		return Done
	}
	m.bump()
	m.lockChanges(e.lock)
	if s.asked <= c.revision {
		s.asked = 0
	}
	for concerns(e.after) {
		holder := e.describe()
		holder.Token = c.token
		m.endTry(e.after, holder)
	}
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
