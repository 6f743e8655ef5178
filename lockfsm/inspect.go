package lockfsm

import "strings"

// LockInfo describes one lock for diagnostics.
type LockInfo struct {
	Key string
	// Queue lists requests from the front of the queue, at most as many as the caller asked for,
	// and fewer if they are large.
	Queue []Standing
	// Held and Waiting count the requests of the whole queue.
	Held, Waiting int
	// Data must not be changed, and stays valid.
	Data Data
}

// Standing is the place of one request in a queue. Its slices must not be changed, and stay valid.
type Standing struct {
	Session SessionID
	// Record is the session's instance record.
	Record []byte
	Number Number
	Place  Revision
	// Token is 0 while the request waits. Watch is then the place of the entry that the request
	// waits for, in any queue. Watch 0 means that only the grace delays the request.
	Token Token
	// Last is the last token that a stay has reserved, see [Change]. Zero means no stay.
	Last        Token
	Watch       Revision
	SinceUnixMS int64
	Grant       // what the request has, or waits for
	// Gone reports that the session has expired, and that the lock stays taken for the request's
	// delay.
	Gone bool
	// Upgrades reports that the request is an upgrade, see Command.
	Upgrades bool
	// Unsearched reports that the search for a deadlock of this waiting request goes on. Only a
	// leader's answer is of use.
	Unsearched bool
}

// Inspect describes the lock of key. The parameter most is the maximum number of listed requests
// of its queue. Inspect reports false if the lock has neither a request nor data. It takes time
// in proportion to its result and to the number of holders.
func (m *Machine) Inspect(key string, most int) (LockInfo, bool) {
	l := m.locks.byKey[key]
	if l == nil {
		return LockInfo{}, false
	}
	room := inspectBytes
	return l.info(l.first, most, &room), true
}

// Holders is like Inspect, but Queue and Held omit the requests up to and including a place. The
// parameter behind is that place. Holders returns false if no request remains, or if the first
// remaining request waits in this queue.
func (m *Machine) Holders(key string, behind Revision, most int) (LockInfo, bool) {
	l := m.locks.byKey[key]
	if l == nil {
		return LockInfo{}, false
	}
	first, passed := l.first, 0
	for ; first != nil && first.rev <= behind; first = first.after {
		if first.token != 0 {
			passed++
		}
	}
	if first != nil && !first.holding {
		first = nil // it waits in this queue, and all later entries do, too
	}
	room := inspectBytes
	i := l.info(first, most, &room)
	i.Held -= passed
	return i, len(i.Queue) > 0
}

// inspectBytes bounds the bytes of the records, keys and values in one result. A result can exceed
// the bound by one request.
const inspectBytes = 256 << 10

func (l *lock) info(e *entry, most int, room *int) LockInfo {
	i := LockInfo{Key: l.key, Waiting: int(l.waiting)}
	if l.data != nil {
		i.Data = *l.data
	}
	i.Held = l.entries() - i.Waiting
	*room -= len(l.key) + len(i.Data.Value)
	for ; e != nil && len(i.Queue) < most && (*room > 0 || len(i.Queue) == 0); e = e.after {
		s := e.standing()
		*room -= len(s.Record) + len(s.Value)
		for _, key := range s.Keys {
			*room -= len(key)
		}
		i.Queue = append(i.Queue, s)
	}
	return i
}

func (e *entry) standing() Standing {
	s := Standing{
		Session: e.session.id, Record: e.session.record, Number: e.number, Place: e.rev, Token: e.token,
		Watch: e.lead().watch(), SinceUnixMS: e.sinceUnixMS(), Grant: *e.grant(), Gone: e.session.gone,
		Unsearched: e.extra != nil && e.extra.pending != nil, Upgrades: e.upgrades(),
	}
	if e.stays() {
		s.Last = e.stay().last
	}
	return s
}

// Holds reports whether a session that is not gone holds the lock of key with token.
func (m *Machine) Holds(key string, token Token) bool {
	e := m.holds([]byte(key), token)
	return e != nil && !e.session.gone
}

// Cursor is a place in the list of all locks, from which a walk continues. The zero value is the
// beginning.
type Cursor struct {
	Key   string
	Place uint64 // if the lock of Key has ended, the walk begins anew and skips the locks up to this place
}

// Walk lists locks whose keys begin with prefix, in the order of their creation. Three arguments
// limit a call: locks is the maximum number of listed locks, queue is the maximum number of
// listed requests of each lock, and budget is the maximum number of visited locks. If more is
// true, there may be further locks after next. A lock that exists during the whole walk is listed
// once.
func (m *Machine) Walk(c Cursor, prefix string, locks, queue, budget int) (all []LockInfo, next Cursor, more bool) {
	l := m.locks.first
	if at := m.locks.byKey[c.Key]; at != nil && at.position <= c.Place {
		l = at.next
	}
	room := inspectBytes
	for next = c; l != nil; l = l.next {
		if budget--; budget < 0 || len(all) == locks || room <= 0 {
			return all, next, true
		}
		m.visit(1)
		next.Key = l.key
		if l.position <= c.Place {
			continue
		}
		next.Place = l.position
		if strings.HasPrefix(l.key, prefix) {
			all = append(all, l.info(l.first, queue, &room))
		}
	}
	return all, next, false
}

// EntryInfo describes a live request in one queue.
type EntryInfo struct {
	Key         string
	Session     SessionID
	Number      Number
	Place       Revision
	Token       Token  // 0 while it waits
	Last        Token  // as in Standing
	Permits, Of uint32 // as in Command
	Modes       []Mode // as in Standing
	Upgrades    Token  // of an upgrade, the token of its hold
}

// Entries lists all live entries, lock by lock, in the order of each queue. It copies the whole
// list, so only tests and recorders should call it.
func (m *Machine) Entries() []EntryInfo {
	all := make([]EntryInfo, 0, m.counts.Entries)
	for l := m.locks.first; l != nil; l = l.next {
		for e := l.first; e != nil; e = e.after {
			i := EntryInfo{Key: l.key, Session: e.session.id, Number: e.number, Place: e.rev, Token: e.token,
				Modes: e.modes()}
			i.Permits, i.Of = e.shares()
			if e.stays() {
				i.Last = e.stay().last
			}
			if hold := e.upgraded(); hold != nil {
				i.Upgrades = hold.token
			}
			all = append(all, i)
		}
	}
	return all
}

// Revision returns the last revision taken.
func (m *Machine) Revision() Revision { return m.rev }

// Reserver returns the stay of the key that has reserved the token. Only the session of the stay
// knows whether a caller holds the lock with that token.
func (m *Machine) Reserver(key string, token Token) (stay Standing, reserved bool) {
	e := m.reserver([]byte(key), token)
	if e == nil {
		return Standing{}, false
	}
	return e.standing(), true
}
