package lockfsm

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"
)

// twin is a second implementation of the rules, as dumb as can be: one flat list of entries in the order of arrival, no queues, no
// lookups, no lists to keep in step. Whatever Machine keeps, the twin works out anew; whom a command woke it finds by comparing
// everybody's state before with everybody's state after.
type twin struct {
	charter     Charter
	supported   uint32
	born, grace bool // grace: it lasts
	rev         uint64
	wall        int64
	failed      bool
	sessions    []twinSession
	entries     []twinEntry
}

type twinSession struct {
	id      SessionID
	nonce   Nonce
	epoch   Epoch
	next    Number
	info    SessionInfo
	removed bool
}

type twinEntry struct {
	key     string
	session SessionID
	number  Number
	place   Revision
	token   Token
	since   int64
}

func newTwin(c Charter, supported uint32) *twin {
	return &twin{charter: c, supported: supported, rev: uint64(c.FoundedUnixMS) * (1 << 21), wall: c.FoundedUnixMS}
}

func (t *twin) tick() uint64 { t.rev++; return t.rev }

func (t *twin) session(id SessionID) *twinSession {
	for i := range t.sessions {
		if t.sessions[i].id == id {
			return &t.sessions[i]
		}
	}
	return nil
}

func (t *twin) find(id SessionID, n Number) *twinEntry {
	for i := range t.entries {
		if t.entries[i].session == id && t.entries[i].number == n {
			return &t.entries[i]
		}
	}
	return nil
}

// state works out what an entry's session would be told about it.
func (t *twin) state(e twinEntry) Change {
	c := Change{Session: e.session, Number: e.number, Token: e.token}
	if c.Token == 0 {
		for _, other := range t.entries {
			if other.key == e.key && other.place < e.place {
				c.Watch = max(c.Watch, other.place)
			}
		}
	}
	return c
}

func (t *twin) states() []Change {
	var all []Change
	for _, e := range t.entries {
		all = append(all, t.state(e))
	}
	return all
}

// settle grants what can be granted, oldest first.
func (t *twin) settle() {
	if t.grace || !t.born {
		return
	}
	for i := range t.entries {
		e := &t.entries[i]
		first := !slices.ContainsFunc(t.entries, func(o twinEntry) bool { return o.key == e.key && o.place < e.place })
		if first && e.token == 0 {
			e.token, e.since = Token(t.tick()), t.wall
		}
	}
}

func (t *twin) drop(gone func(twinEntry) bool) { t.entries = slices.DeleteFunc(t.entries, gone) }

// apply is Machine.Apply for a command that decodes.
func (t *twin) apply(term uint64, c Command) Result {
	r := Result{Kind: c.Kind, Session: c.Session, Epoch: c.Epoch, Number: c.Number}
	if t.failed || c.Rules > t.charter.Rules {
		r.Code = Unsupported
		return r
	}
	if c.Kind == markKind && (c.Rules < 2 || RulesVersion < 2) {
		r.Code = Malformed
		return r
	}
	if c.Kind == Open || c.Kind == Attach {
		r.Nonce = c.Nonce
	}
	if !t.born && c.Kind != Born {
		r.Code = NotBorn
		return r
	}
	before := t.states()
	t.carryOut(term, c, &r)
	after := t.states()
	for _, now := range after {
		for _, then := range before {
			if then.Session == now.Session && then.Number == now.Number && then != now {
				r.Fired = append(r.Fired, now)
			}
		}
		if c.Kind == Attach && r.Code == Done && now.Session == c.Session {
			r.States = append(r.States, now)
		}
	}
	return r
}

func (t *twin) carryOut(term uint64, c Command, r *Result) {
	r.Code = Done
	switch c.Kind {
	case Stamp:
		if c.WallUnixMS > t.wall {
			t.tick()
			t.wall = c.WallUnixMS
		}
	case Born:
		if !t.born {
			t.tick()
			t.born, t.grace = true, t.charter.Grace != 0
		}
	case EndGrace:
		if t.grace {
			t.tick()
			t.grace = false
			t.settle()
		}
	case Raise:
		if c.Version > t.supported {
			t.failed, r.Code = true, Unsupported
		} else if c.Version > t.charter.Rules {
			t.tick()
			t.charter.Rules = c.Version
		}
	case Adopt:
		was := t.charter
		if c.TTL != 0 {
			t.charter.SessionTTL = c.TTL
		}
		if len(c.Settings) != 0 {
			t.charter.Settings = bytes.Clone(c.Settings)
		}
		if was.SessionTTL != t.charter.SessionTTL || string(was.Settings) != string(t.charter.Settings) {
			t.tick()
		}
	case markKind:
		t.tick()
	case Open:
		t.open(c, r)
	default:
		t.ofSession(term, c, r)
	}
}

func (t *twin) open(c Command, r *Result) {
	for _, s := range t.sessions {
		if s.nonce == c.Nonce {
			r.Session, r.TTL = s.id, s.info.TTL
			return
		}
	}
	if len(t.sessions) == int(t.charter.Limits.Sessions) {
		r.Code = TooManySessions
		return
	}
	ttl := c.TTL
	if ttl == 0 || ttl > t.charter.SessionTTL {
		ttl = t.charter.SessionTTL
	}
	id := SessionID(t.tick())
	record := append([]byte(nil), c.Record...)
	t.sessions = append(t.sessions, twinSession{id: id, nonce: c.Nonce, next: 1, info: SessionInfo{ID: id, Nonce: c.Nonce, TTL: ttl, Record: record}})
	r.Session, r.TTL = id, ttl
}

func (t *twin) ofSession(term uint64, c Command, r *Result) {
	s := t.session(c.Session)
	if s == nil || c.Kind == Attach && c.Nonce != s.nonce {
		r.Code = NoSession
		return
	}
	stale := c.Epoch != s.epoch
	if c.Kind == Attach {
		stale = c.Epoch <= s.epoch
	}
	if c.Kind == Expire {
		stale = c.Term != term
	}
	if stale {
		r.Code = Stale
		return
	}
	switch c.Kind {
	case Attach:
		t.tick()
		s.epoch = c.Epoch
		if c.Number > s.next {
			s.next = c.Number
		}
		t.drop(func(e twinEntry) bool {
			named := slices.ContainsFunc(c.Live, func(l Range) bool { return l.First <= e.number && e.number <= l.Last })
			return e.session == c.Session && !named
		})
		t.settle()
	case Leaving:
		if !s.info.Leaving {
			t.tick()
			s.info.Leaving = true
		}
	case Close, Expire:
		t.tick()
		t.drop(func(e twinEntry) bool { return e.session == c.Session })
		t.sessions = slices.DeleteFunc(t.sessions, func(s twinSession) bool { return s.id == c.Session })
		t.settle()
	case Release, Cancel:
		t.release(s, c, r)
	case Acquire:
		t.acquire(s, c, r)
	}
}

func (t *twin) release(s *twinSession, c Command, r *Result) {
	r.Code = Finished
	if c.Number >= s.next {
		t.tick()
		s.next = c.Number + 1
	} else if t.find(c.Session, c.Number) != nil {
		t.tick()
		r.Code = Done
		t.drop(func(e twinEntry) bool { return e.session == c.Session && e.number == c.Number })
		t.settle()
	}
}

func (t *twin) acquire(s *twinSession, c Command, r *Result) {
	if c.Number < s.next {
		r.Code = Finished
		if t.find(c.Session, c.Number) == nil {
			return
		}
	} else {
		s.next = c.Number + 1
		place := Revision(t.tick())
		if r.Code = t.refusal(c, r); r.Code != Done {
			return
		}
		t.entries = append(t.entries, twinEntry{key: c.Key, session: c.Session, number: c.Number, place: place})
		t.settle()
	}
	mine := *t.find(c.Session, c.Number)
	now := t.state(mine)
	r.Code, r.Token, r.Watch = Waiting, now.Token, now.Watch
	if now.Token == 0 {
		r.Holder = t.holder(mine.key)
	}
	if now.Token != 0 {
		r.Code = Granted
	}
}

// holder says who holds a key, nil if nobody does.
func (t *twin) holder(key string) *Holder {
	var found *Holder
	waiting := 0
	for _, e := range t.entries {
		switch {
		case e.key != key:
		case e.token == 0:
			waiting++
		default:
			found = &Holder{
				Session: e.session, Record: t.session(e.session).info.Record, Token: e.token, SinceUnixMS: e.since,
			}
		}
	}
	if found != nil {
		found.Waiters = waiting
	}
	return found
}

func (t *twin) refusal(c Command, r *Result) Code {
	var own, queue, waiting int
	for _, e := range t.entries {
		if e.session == c.Session {
			own++
		}
		if e.key != c.Key {
			continue
		}
		queue++
		if e.token == 0 {
			waiting++
		}
	}
	limits := t.charter.Limits
	switch {
	case c.Key == "" || len(c.Key) > int(limits.KeyBytes) || !utf8.ValidString(c.Key) || bytes.ContainsFunc([]byte(c.Key), unicode.IsControl):
		return BadKey
	case own >= int(limits.EntriesPerSession):
		return TooManyEntries
	case c.Try && t.grace:
		return InGrace
	case c.Try && queue > 0:
		r.Holder = t.holder(c.Key)
		return Held
	case !c.Try && queue > 0 && waiting >= int(limits.WaitersPerLock):
		return QueueFull
	}
	return Done
}
