package lockfsm

import (
	"bytes"
	"cmp"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-lock/mortise/internal/capability"
)

// twin is a second, simple implementation of the rules. It has one flat list of entries in the
// order of arrival, and computes everything else from the list. It finds the requests for Fired by
// comparing the states before and after a command.
type twin struct {
	charter     Charter
	supported   uint32
	born, grace bool // grace is set while the group is in its grace
	rev         uint64
	wall        int64
	failed      bool
	sessions    []twinSession
	entries     []twinEntry
	data        map[string]Data
	valued      []string // keys of the hold whose value the command has changed
	lapsed      string   // the key of the stay whose caller the command has ended
	lapses      []Token  // the tokens of all such callers
	ended       []Change // requests with Try that the command has ended
}

type twinSession struct {
	id    SessionID
	nonce Nonce
	epoch Epoch
	next  Number
	info  SessionInfo
	gone  bool
	// The rights are those of the text; see may.
	opener Opener
	life   uint64
	rights string
}

// may reports whether the rights of a text grant a verb on each of the keys.
func may(text string, verb capability.Verb, keys ...string) bool {
	c, err := capability.Parse(text)
	return text == "" || err == nil && !slices.ContainsFunc(keys, func(key string) bool { return !c.Allows(verb, key) })
}

// mayEnd reports whether the rights of a text suffice to end a hold of another.
func mayEnd(text string, keys ...string) bool {
	return may(text, capability.Read, keys...) && may(text, capability.Force, keys...)
}

const unlimited = 1 << 32

// theEnd is a rank behind that of every entry.
const theEnd = 1 << 63

// share is a number of permits, and the total that their request names.
type share struct{ permits, of uint64 }

type twinEntry struct {
	keys    []string
	shares  []share // of the keys, in their order
	modes   []Mode  // likewise
	owner   Number
	inner   Number // of an upgrade, its second owner
	hold    Number // of an upgrade, the number of its hold
	rank    uint64 // twice the place; that of an upgrade is directly behind the entries inside
	value   []byte
	seq     uint64
	notice  bool
	told    bool
	try     bool
	sticky  bool
	resumed bool
	last    Token
	asked   Revision
	delay   time.Duration
	session SessionID
	number  Number
	place   Revision
	token   Token
	since   int64
}

func newTwin(c Charter, supported uint32) *twin {
	return &twin{charter: c, supported: supported, rev: uint64(c.FoundedUnixMS) * (1 << 21), wall: c.FoundedUnixMS,
		data: map[string]Data{}}
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

func (t *twin) state(e twinEntry) Change {
	c := Change{Session: e.session, Number: e.number, Token: e.token, Wanted: e.told, Last: e.last, Asked: e.asked}
	if c.Token == 0 {
		if key, stuck := t.stuck(e); stuck {
			before := e.others(t.before(key, e.rank))
			c.Watch = before[len(before)-1].place
		}
	}
	return c
}

func (t *twin) before(key string, rank uint64) (all []twinEntry) {
	for _, e := range t.entries {
		if slices.Contains(e.keys, key) && e.rank < rank {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b twinEntry) int { return cmp.Compare(a.rank, b.rank) })
	return all
}

// others removes from a row the hold that e upgrades.
func (e twinEntry) others(row []twinEntry) []twinEntry {
	return slices.DeleteFunc(slices.Clone(row), func(o twinEntry) bool {
		return e.hold != 0 && o.session == e.session && o.number == e.hold
	})
}

func (e twinEntry) upgradable() bool {
	return e.modes[0] == ModeU
}

// upgrade makes e an upgrade, and reports whether it may be one.
func (t *twin) upgrade(e *twinEntry) bool {
	hold := t.find(e.session, e.owner)
	if hold == nil || hold.token == 0 || !hold.upgradable() || hold.keys[0] != e.keys[0] {
		return false
	}
	e.hold = e.owner
	for _, o := range t.before(e.keys[0], theEnd) {
		if o.hold == e.owner && o.session == e.session {
			return false
		}
		if t.inside(o, e.keys[0]) {
			e.rank = o.rank + 1
		}
	}
	return true
}

func fit(row []twinEntry, key string) bool {
	taken, least := uint64(0), uint64(1<<40)
	for _, e := range row {
		one := e.share(key)
		taken += one.permits
		least = min(least, one.of)
	}
	return taken <= least
}

func (e twinEntry) share(key string) share { return e.shares[slices.Index(e.keys, key)] }

// modesOf returns the mode of each key of an Acquire.
func modesOf(c Command) (all []Mode) {
	for i := range 1 + len(c.Keys) {
		switch {
		case c.Modes != nil:
			all = append(all, c.Modes[i])
		default:
			all = append(all, c.Mode)
		}
	}
	return all
}

// sharesOf returns the share of each mode. Those of a semaphore are given.
func sharesOf(modes []Mode, of share) (all []share) {
	for _, mode := range modes {
		all = append(all, []share{ModeX: {1, 1}, ModeIS: {1, unlimited}, ModeIX: {1, 65_536},
			ModeS: {65_536, 1<<32 - 1}, ModeU: {1<<30 + 1, 1 << 31}, ModePermits: of}[mode])
	}
	return all
}

// lowerModes returns the modes that a Downgrade may give a key that has a mode.
func lowerModes(mode Mode) []Mode {
	return [][]Mode{ModeX: {ModeX, ModeIX, ModeS, ModeIS}, ModeIS: {ModeIS}, ModeIX: {ModeIX, ModeIS},
		ModeS: {ModeS, ModeIS}, ModeU: {ModeU, ModeS, ModeIS}, ModePermits: nil}[mode]
}

// lowers reports whether a downgrade can give e these modes, or has done so.
func (e twinEntry) lowers(modes []Mode) bool {
	if e.token == 0 || e.sticky || e.hold != 0 || len(modes) != len(e.modes) {
		return false
	}
	for i, mode := range modes {
		if !slices.Contains(lowerModes(e.modes[i]), mode) {
			return false
		}
	}
	return true
}

func (t *twin) stuck(e twinEntry) (string, bool) {
	for _, key := range e.keys {
		if !t.inside(e, key) {
			return key, true
		}
	}
	return "", false
}

func (t *twin) inside(e twinEntry, key string) bool {
	return fit(append(e.others(t.before(key, e.rank)), e), key)
}

// stayed reports whether all entries inside are stays, or will be when they are granted.
func (t *twin) stayed(key string) bool {
	stays := 0
	for _, e := range t.before(key, theEnd) {
		if t.inside(e, key) {
			if e.last == 0 && (!e.sticky || e.token != 0) {
				return false
			}
			stays++
		}
	}
	return stays > 0
}

// owned reports whether a request that is no stay holds the key.
func (t *twin) owned(key string) bool {
	return slices.ContainsFunc(t.before(key, theEnd), func(e twinEntry) bool { return e.token != 0 && e.last == 0 })
}

func (t *twin) states() []Change {
	var all []Change
	for _, e := range t.entries {
		all = append(all, t.state(e))
	}
	return all
}

func (t *twin) settle() {
	if t.grace || !t.born {
		return
	}
	for i := range t.entries {
		e := &t.entries[i]
		if _, stuck := t.stuck(*e); !stuck && e.token == 0 {
			e.token, e.since = Token(t.tick()), t.wall
			e.try = false
			if e.sticky && t.rev+1024 <= uint64(t.wall)<<21 {
				t.rev += 1024
				e.last = Token(t.rev)
			}
			queue := t.behind(*e)
			waits := func(o twinEntry) bool { return o.try && !t.inside(o, e.keys[0]) }
			if e.last != 0 && slices.ContainsFunc(queue, waits) {
				e.asked = queue[len(queue)-1].place
			}
		}
	}
	for i := range t.entries {
		if e := &t.entries[i]; e.notice && e.token != 0 && t.wanted(*e) {
			e.told = true
		}
	}
}

func (t *twin) behind(e twinEntry) (all []twinEntry) {
	for _, o := range t.entries {
		if o.rank > e.rank && slices.Contains(o.keys, e.keys[0]) {
			all = append(all, o)
		}
	}
	return all
}

// endTries ends the requests with Try whose wait is over, and reports whether there was one.
func (t *twin) endTries() bool {
	left := len(t.entries)
	over := func(e twinEntry) int {
		return slices.IndexFunc(e.keys, func(key string) bool { return e.try && !t.inside(e, key) && t.owned(key) })
	}
	all := slices.DeleteFunc(slices.Clone(t.entries), func(e twinEntry) bool { return over(e) < 0 })
	for _, e := range all {
		if i := over(e); i >= 0 { // it may fit now, because another one has ended
			t.endTry(e, *t.holder(e.keys[i], e), e.keys[i])
		}
	}
	t.settle()
	return len(t.entries) < left
}

func (t *twin) endTry(e twinEntry, holder Holder, key string) {
	holder.Waiters--
	if len(e.keys) > 1 {
		holder.Key = key
	}
	t.ended = append(t.ended, Change{Session: e.session, Number: e.number, Held: &holder})
	t.drop(func(o twinEntry) bool { return o.place == e.place })
}

func (t *twin) inUse(s *twinSession, c Command, r *Result) {
	r.Code = Finished
	if c.Number >= s.next {
		t.tick()
		s.next = c.Number + 1
		return
	}
	e := t.find(c.Session, c.Number)
	if e == nil || c.Token <= e.token || c.Token > e.last {
		return
	}
	r.Code = Done
	heard := func(o twinEntry) bool { return o.try && o.place <= c.Revision }
	if e.asked == 0 || e.asked > c.Revision && !slices.ContainsFunc(t.behind(*e), heard) {
		return
	}
	t.tick()
	if e.asked <= c.Revision {
		e.asked = 0
	}
	stay := *e
	for _, o := range t.behind(stay) {
		if heard(o) && !t.inside(o, stay.keys[0]) {
			holder := t.describe(stay, stay.keys[0])
			holder.Token = c.Token
			t.endTry(o, holder, stay.keys[0])
		}
	}
	t.settle()
}

func (t *twin) lapse(s *twinSession, c Command, r *Result) {
	r.Code = Finished
	if c.Number >= s.next {
		t.tick()
		s.next = c.Number + 1
		return
	}
	e := t.find(c.Session, c.Number)
	if e == nil || !e.sticky || e.token == 0 {
		return
	}
	first, last := e.token+1, e.last
	if last == 0 {
		first, last = e.token, e.token
	}
	if c.Token < first || c.Token > last {
		return
	}
	if r.Code = Done; !slices.Contains(t.lapses, c.Token) {
		t.tick()
		t.lapses, t.lapsed = append(t.lapses, c.Token), e.keys[0]
	}
}

func (t *twin) wanted(e twinEntry) bool {
	return slices.ContainsFunc(t.entries, func(o twinEntry) bool {
		return slices.ContainsFunc(o.keys, func(key string) bool {
			return slices.Contains(e.keys, key) && !t.inside(o, key) && (o.hold != e.number || o.session != e.session)
		})
	})
}

// drop removes entries, and the upgrades of removed holds.
func (t *twin) drop(gone func(twinEntry) bool) {
	t.entries = slices.DeleteFunc(t.entries, gone)
	orphan := func(e twinEntry) bool { return e.hold != 0 && t.find(e.session, e.hold) == nil }
	t.entries = slices.DeleteFunc(t.entries, orphan)
}

func (t *twin) apply(term uint64, c Command) Result {
	t.valued, t.lapsed = nil, ""
	r := Result{Kind: c.Kind, Session: c.Session, Epoch: c.Epoch, Number: c.Number}
	if t.failed || c.Rules > t.charter.Rules {
		r.Code = Unsupported
		return r
	}
	if c.Kind == markKind && (c.Rules < marksVersion || RulesVersion < marksVersion) {
		r.Code = Malformed
		return r
	}
	if c.Kind == Open || c.Kind == Attach || c.Kind == Put {
		r.Nonce = c.Nonce
	}
	if !t.born && c.Kind != Born {
		r.Code = NotBorn
		return r
	}
	before, known := t.states(), c.Kind != Acquire || t.find(c.Session, c.Number) != nil
	t.ended = nil
	t.carryOut(term, c, &r)
	for t.endTries() {
	}
	after := t.states()
	// the result reports the notice of the resumed request, too
	if r.Evicted != nil && c.Kind == Acquire && t.find(c.Session, c.Number).told {
		r.Fired = append(r.Fired, t.state(*t.find(c.Session, c.Number)))
	}
	for _, now := range after {
		for _, then := range before {
			if now.Asked == 0 {
				then.Asked = 0 // an answered stay needs no message
			}
			if then.Session == now.Session && then.Number == now.Number && then != now {
				r.Fired = append(r.Fired, now)
			}
		}
		if c.Kind == Attach && r.Code == Done && now.Session == c.Session {
			r.States = append(r.States, now)
		}
	}
	// and that of a request that was granted at once
	if !known && r.Evicted == nil && r.Code == Granted && t.find(c.Session, c.Number).told {
		r.Fired = append(r.Fired, t.state(*t.find(c.Session, c.Number)))
	}
	r.Fired = append(r.Fired, t.ended...)
	for _, all := range [][]Change{r.Fired, r.States} {
		for i := range all {
			all[i].Grant = t.grant(all[i].Session, all[i].Number)
		}
	}
	if r.Code == Granted {
		r.Grant = t.grant(c.Session, c.Number)
	}
	slices.SortFunc(r.States, func(a, b Change) int { return cmp.Compare(a.Number, b.Number) })
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
		limits := &t.charter.Limits
		if c.SessionBytes != 0 {
			limits.SessionBytes = c.SessionBytes
		}
		if c.GroupBytes != 0 {
			limits.GroupBytes = c.GroupBytes
		}
		if was.Limits != *limits || was.SessionTTL != t.charter.SessionTTL ||
			string(was.Settings) != string(t.charter.Settings) {
			t.tick()
		}
	case Evict:
		t.evict(c, r)
	case Put:
		t.put(c, r)
	case SetValue:
		t.setValue(c, r)
	case Reserve:
		if last := t.rev + uint64(c.Count); last > uint64(t.wall)<<21 {
			r.Code = TooEarly
		} else {
			r.Token, r.Last = Token(t.rev+1), Token(last)
			t.rev = last
		}
	case Lead:
		t.tick()
	case Refuse: // in the workload no request is in a deadlock
		r.Code = NoSession
		if s := t.session(c.Session); s != nil {
			r.Code, r.Epoch = Finished, s.epoch
		}
	case markKind:
		t.tick()
	case Open:
		t.open(c, r)
	default:
		t.ofSession(term, c, r)
	}
}

func (t *twin) evict(c Command, r *Result) {
	r.Code = Finished
	for _, e := range t.entries {
		if e.last != 0 && c.Key == e.keys[0] && c.Token > e.token && c.Token <= e.last {
			r.Code = Kept
		}
		if e.token == c.Token && e.token != 0 && slices.Contains(e.keys, c.Key) {
			if !mayEnd(c.Rights, e.keys...) {
				r.Code = NotForced
				return
			}
			t.tick()
			r.Code, r.Evicted = Done, &Eviction{e.session, e.number, c.Token, c.Key, t.session(e.session).info.Record,
				c.Record, c.Value, nil, false, 0}
			t.drop(func(o twinEntry) bool { return o.place == e.place })
			t.sweep()
			t.settle()
			return
		}
	}
}

func (t *twin) sweep() {
	t.sessions = slices.DeleteFunc(t.sessions, func(s twinSession) bool {
		return s.gone && !slices.ContainsFunc(t.entries, func(o twinEntry) bool { return o.session == s.id })
	})
}

func (t *twin) put(c Command, r *Result) {
	now := t.data[c.Key]
	switch {
	case !t.good(c.Key):
		r.Code = BadKey
		return
	case now.Revision > 0 && now.nonce == c.Nonce:
	case now.Revision != c.Revision:
		r.Code = Changed
	case c.Token != 0 && !t.guards(c):
		r.Code = NotHeld
		return
	case len(c.Value) > 0 && t.overPut(c, r):
		return
	case len(c.Value) > 0:
		now = Data{bytes.Clone(c.Value), Revision(t.tick()), c.Nonce}
		t.data[c.Key] = now
	case now.Revision > 0:
		t.tick()
		delete(t.data, c.Key)
		now = Data{}
	}
	r.Data = &now
}

func (t *twin) setValue(c Command, r *Result) {
	r.Code = NotHeld
	for i := range t.entries {
		e := &t.entries[i]
		if e.token != c.Token || e.sticky || !slices.Contains(e.keys, c.Key) || t.session(e.session).gone ||
			c.Opener != t.session(e.session).opener {
			continue
		}
		if r.Code = Done; c.Seq <= e.seq {
			return
		}
		after := *e
		after.value, after.seq = c.Value, c.Seq
		if t.overValue(*e, after, r) {
			return
		}
		t.tick()
		*e, t.valued = after, after.keys
	}
}

func (t *twin) guards(c Command) bool {
	return slices.ContainsFunc(t.entries, func(e twinEntry) bool {
		return e.token == c.Token && e.last == 0 && slices.Contains(e.keys, c.Lock) && !t.session(e.session).gone
	})
}

func (t *twin) takeUp(s *twinSession, c Command, r *Result) {
	own := 0
	for _, o := range t.entries {
		if o.session == s.id {
			own += len(o.keys)
		}
	}
	if r.Code = NotHeld; !may(s.rights, capability.Lock, c.Key) {
		r.Code = NotAllowed
		return
	}
	for i := range t.entries {
		e := &t.entries[i]
		if e.token != c.Token || e.sticky || !slices.Contains(e.keys, c.Key) || e.hold != 0 ||
			e.upgradable() {
			continue
		}
		if own+len(e.keys) > int(t.charter.Limits.EntriesPerSession) {
			r.Code = TooManyEntries
			return
		}
		of := t.session(e.session)
		own := of.gone || of.opener.Instance == s.opener.Instance || of.rights == s.rights
		switch {
		case !may(s.rights, capability.Lock, e.keys...):
			r.Code = NotAllowed
			return
		case !own && !mayEnd(s.rights, e.keys...):
			r.Code = NotForced
			return
		}
		if t.overTakingUp(s, *e, c, r) {
			return
		}
		r.Evicted = &Eviction{e.session, e.number, c.Token, c.Key, of.info.Record, nil, nil,
			s.info.Record, !of.gone && of != s, 0}
		e.session, e.number, e.owner, e.token, e.since, e.notice, e.told = s.id, c.Number, c.Owner, Token(t.tick()),
			t.wall, c.Notice, false
		e.seq, e.resumed = 0, true
		if len(c.Value) > 0 {
			e.value = c.Value
		}
		if c.Delay > 0 {
			e.delay = c.Delay
		}
		r.Code, r.Token = Granted, e.token
		t.settle()
		t.sweep()
		return
	}
}

func (t *twin) detach(s *twinSession, c Command, r *Result) {
	e := t.find(c.Session, c.Number)
	if c.Number >= s.next || e == nil || e.token == 0 || e.delay == 0 {
		t.release(s, c, r)
		return
	}
	gone := 0
	for _, o := range t.sessions {
		if o.gone {
			gone++
		}
	}
	if limit := int(t.charter.Limits.Sessions); len(t.sessions) >= limit || gone >= (limit+1)/2 {
		t.release(s, c, r)
		r.Code = TooManySessions
		return
	}
	if t.refuseGrowth(1024+6*uint64(len(s.info.Record)), r) {
		code := r.Code
		t.release(s, c, r)
		r.Code = code
		return
	}
	left := *s
	left.id, left.gone, left.info.TTL = SessionID(t.tick()), true, e.delay
	left.opener, left.life, left.rights = Opener{}, 0, ""
	e.session, e.owner = left.id, 0
	t.sessions = append(t.sessions, left)
	r.Detached, r.TTL = left.id, e.delay
}

func (t *twin) open(c Command, r *Result) {
	for _, s := range t.sessions {
		if s.nonce == c.Nonce && !s.gone {
			if s.opener != c.Opener {
				r.Code = NoSession
				return
			}
			r.Session, r.TTL = s.id, s.info.TTL
			return
		}
	}
	if len(t.sessions) == int(t.charter.Limits.Sessions) {
		r.Code = TooManySessions
		return
	}
	s := twinSession{nonce: c.Nonce, next: 1, opener: c.Opener, life: c.Life, rights: c.Rights}
	s.info = SessionInfo{Nonce: c.Nonce, Record: append([]byte(nil), c.Record...)}
	if t.groupCharge()+s.ownCharge() > t.charter.Limits.GroupBytes {
		r.Code, r.Budget = OverGroupBudget, t.charter.Limits.GroupBytes
		return
	}
	ttl := c.TTL
	if ttl == 0 || ttl > t.charter.SessionTTL {
		ttl = t.charter.SessionTTL
	}
	s.id, s.info.TTL = SessionID(t.tick()), ttl
	t.sessions = append(t.sessions, s)
	r.Session, r.TTL = s.id, ttl
}

func (t *twin) ofSession(term uint64, c Command, r *Result) {
	s := t.session(c.Session)
	if s == nil || s.gone && c.Kind != Expire || c.Kind == Attach && c.Nonce != s.nonce {
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
	if s.gone && c.Cause != 0 { // an Expire
		r.Code = Finished
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
			named := slices.ContainsFunc(c.Live, func(l Range) bool {
				return l.First <= e.number &&
					e.number <= l.Last
			})
			return e.session == c.Session && !named
		})
		t.settle()
	case Leaving:
		if !s.info.Leaving {
			t.tick()
			s.info.Leaving = true
		}
	case Close, Expire:
		if c.Cause != 0 {
			r.Evicted = &Eviction{Session: s.id, Record: s.info.Record, By: c.Record, Reason: c.Value, Cause: c.Cause}
		}
		if c.Kind == Expire && t.linger(s, r) {
			return
		}
		t.tick()
		t.drop(func(e twinEntry) bool { return e.session == c.Session })
		t.sessions = slices.DeleteFunc(t.sessions, func(s twinSession) bool { return s.id == c.Session })
		t.settle()
	case Release, Cancel, Downgrade:
		t.release(s, c, r)
	case Detach:
		t.detach(s, c, r)
	case InUse:
		t.inUse(s, c, r)
	case Lapse:
		t.lapse(s, c, r)
	case Acquire:
		t.acquire(s, c, r)
	}
}

// linger marks an expiring session as gone if it has holds with a delay. Each further Expire ends
// the holds with the shortest delay.
func (t *twin) linger(s *twinSession, r *Result) bool {
	over := time.Duration(0)
	if s.gone {
		over = s.info.TTL
	}
	stays := func(e twinEntry) bool { return e.session == s.id && e.token != 0 && e.delay > over }
	if !slices.ContainsFunc(t.entries, stays) {
		return false
	}
	t.tick()
	s.gone = true
	t.drop(func(e twinEntry) bool { return e.session == s.id && !stays(e) })
	until := MaxDelay
	for _, e := range t.entries {
		if e.session == s.id {
			until = min(until, e.delay)
		}
	}
	s.info.TTL, r.TTL = until, until-over
	t.settle()
	return true
}

func (t *twin) release(s *twinSession, c Command, r *Result) {
	r.Code = Finished
	if c.Number >= s.next {
		t.tick()
		s.next = c.Number + 1
	} else if e := t.find(c.Session, c.Number); e != nil && c.Kind == Downgrade {
		r.Code = Downgraded
		switch {
		case !e.lowers(c.Modes):
			r.Code = NotHeld
		case !slices.Equal(c.Modes, e.modes):
			t.tick()
			e.modes, e.shares = slices.Clone(c.Modes), sharesOf(c.Modes, share{})
			t.drop(func(o twinEntry) bool { return o.hold == c.Number && o.session == c.Session })
			t.settle()
		}
	} else if e != nil {
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
		if c.Token > 0 {
			t.takeUp(s, c, r)
			return
		}
		e := twinEntry{
			keys: append([]string{c.Key}, c.Keys...), session: c.Session, number: c.Number, place: place,
			rank:   2 * uint64(place),
			shares: sharesOf(modesOf(c), share{uint64(c.Permits), uint64(c.Of)}), modes: modesOf(c), owner: c.Owner,
			inner: c.Inner, value: c.Value,
			notice: c.Notice || c.Sticky, delay: c.Delay, try: c.Try, sticky: c.Sticky,
		}
		if r.Code = t.refusal(&e, c, r); r.Code != Done {
			if r.Code == Deadlock {
				r.Circle = []Link{{}}
			}
			return
		}
		t.entries = append(t.entries, e)
		t.settle()
		if mine := *t.find(c.Session, c.Number); mine.try {
			for i := range t.entries {
				o := &t.entries[i]
				if o.last != 0 && slices.Contains(e.keys, o.keys[0]) && !t.inside(mine, o.keys[0]) {
					o.asked = e.place
				}
			}
		}
	}
	mine := *t.find(c.Session, c.Number)
	now := t.state(mine)
	r.Code, r.Token, r.Watch, r.Last = Waiting, now.Token, now.Watch, now.Last
	if key, stuck := t.stuck(mine); stuck && now.Token == 0 {
		r.Holder = t.holder(key, mine)
	}
	if now.Token != 0 {
		r.Code = Granted
	}
}

// holder returns an ordinary request that holds a key, or a stay, or the first request in its
// queue. It is never the hold that the waiting request e upgrades. During the grace it returns nil.
func (t *twin) holder(key string, e twinEntry) *Holder {
	if t.grace {
		return nil
	}
	queue := e.others(t.before(key, theEnd))
	for _, is := range []func(twinEntry) bool{
		func(e twinEntry) bool { return e.token != 0 && e.last == 0 },
		func(e twinEntry) bool { return e.token != 0 },
		func(twinEntry) bool { return true },
	} {
		if first := slices.IndexFunc(queue, is); first >= 0 {
			found := t.describe(queue[first], key)
			return &found
		}
	}
	return nil
}

func (t *twin) describe(e twinEntry, key string) Holder {
	waiting := 0
	for _, o := range t.before(key, theEnd) {
		if o.token == 0 {
			waiting++
		}
	}
	return Holder{
		Session: e.session, Record: t.session(e.session).info.Record, Token: e.token, SinceUnixMS: e.since,
		Waiters: waiting, Value: e.value, Kept: e.last != 0,
	}
}

func (t *twin) refusal(e *twinEntry, c Command, r *Result) Code {
	limits := t.charter.Limits
	own := 0
	for _, o := range t.entries {
		if o.session == e.session {
			own += len(o.keys)
		}
	}
	if slices.ContainsFunc(e.keys, func(key string) bool { return !t.good(key) }) {
		return BadKey
	}
	if !may(t.session(e.session).rights, capability.Lock, e.keys...) {
		return NotAllowed
	}
	switch {
	case own+len(e.keys) > int(limits.EntriesPerSession):
		return TooManyEntries
	case c.Try && t.grace:
		return InGrace
	case c.Upgrades && !t.upgrade(e):
		return NotHeld
	}
	if t.refuseRequest(e.session, t.requestCharge(*e), r) {
		return r.Code
	}
	for _, key := range e.keys {
		queue := t.before(key, theEnd)
		waiting := 0
		for _, o := range queue {
			if o.token == 0 {
				waiting++
			}
		}
		waits, full := !fit(append(slices.Clone(queue), *e), key), waiting >= int(limits.WaitersPerLock)
		before := slices.ContainsFunc(queue, func(o twinEntry) bool { return o.token == 0 && !o.try })
		switch {
		case len(queue) == 0:
		case c.Try && waits && (t.owned(key) || t.stayed(key) && before):
			r.Holder = t.holder(key, *e)
			return Held
		case c.Try && waits && (before || full), c.Try && len(e.keys) > 1 && full:
			r.Holder = t.holder(key, *e)
			return QueueFull
		case !c.Try && (full || waits && c.Most > 0 && waiting >= int(c.Most)):
			if len(e.keys) > 1 {
				r.Holder = t.holder(key, *e)
			}
			return QueueFull
		}
	}
	if c.Owner > 0 && !c.Try && t.circular(*e) {
		return Deadlock
	}
	return Done
}

func (t *twin) good(key string) bool {
	return key != "" && len(key) <= int(t.charter.Limits.KeyBytes) && utf8.ValidString(key) &&
		!bytes.ContainsFunc([]byte(key), unicode.IsControl)
}

// circular reports whether e, at the end of its queues, would wait for one of its owners.
func (t *twin) circular(e twinEntry) bool {
	return t.waitsForOneOf(e) || !t.ends(e, true) && t.ends(e, false)
}

// This method reports whether e, with or without its owners, would be granted if every request
// ended as soon as possible. A request cannot end while a remaining request has it as an owner.
// Otherwise it can end if it is granted or fits into all its queues. Without an owner, e delays no
// other.
func (t *twin) ends(e twinEntry, owned bool) bool {
	if !owned {
		e.owner, e.inner = 0, 0
	}
	left := append(slices.Clone(t.entries), e)
	for {
		i := slices.IndexFunc(left, func(o twinEntry) bool {
			under := func(below twinEntry) bool { return below.under(o) }
			full := func(key string) bool {
				row := slices.DeleteFunc(slices.Clone(left), func(b twinEntry) bool {
					return b.rank > o.rank || !slices.Contains(b.keys, key) ||
						!owned && b.place == e.place && o.place != e.place
				})
				row = o.others(row)
				return !fit(row, key)
			}
			return !slices.ContainsFunc(left, under) && (o.token != 0 || o.try || !slices.ContainsFunc(o.keys, full))
		})
		switch {
		case i < 0:
			return false
		case left[i].place == e.place:
			return true
		}
		left = slices.Delete(left, i, i+1)
	}
}

// waitsForOneOf searches the wait-for graph without the edges between requests that are not
// exclusive.
func (t *twin) waitsForOneOf(e twinEntry) bool {
	waits := map[Revision]bool{}
	add := func(e twinEntry) {
		for _, key := range e.keys {
			row := e.others(t.before(key, e.rank))
			if fit(append(slices.Clone(row), e), key) {
				continue
			}
			for _, o := range row {
				// otherwise a third request may return enough permits
				if e.share(key).of == 1 || o.share(key).of == 1 {
					waits[o.place] = true
				}
			}
		}
	}
	add(e)
	for known := 0; known < len(waits); {
		known = len(waits)
		for _, o := range t.entries {
			if !waits[o.place] {
				continue
			}
			if o.token == 0 && !o.try {
				add(o)
			}
			for _, below := range t.entries {
				if below.under(o) {
					waits[below.place] = true
				}
			}
		}
	}
	return t.above(e, func(o *twinEntry) bool { return waits[o.place] })
}

// under reports whether o is an owner of e.
func (e twinEntry) under(o twinEntry) bool {
	return e.session == o.session && (e.owner == o.number || e.inner == o.number)
}

// above reports whether is holds for an owner of e, an owner of that owner, and so on.
func (t *twin) above(e twinEntry, is func(*twinEntry) bool) bool {
	for _, n := range []Number{e.owner, e.inner} {
		if o := t.find(e.session, n); o != nil && (is(o) || t.above(*o, is)) {
			return true
		}
	}
	return false
}
