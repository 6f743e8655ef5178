package lockfsm

import (
	"cmp"
	"slices"
	"strings"
)

// entry is the place of one live request in one queue. A request for several keys has one entry in
// the queue of each key, with the same revision and token. Only its lead entry, the entry with the
// lowest key, is in the session's list and in its map by number.
type entry struct {
	lock         *lock // nil after the entry has been removed
	ahead, after *entry
	session      *session
	prev, next   *entry
	number       Number
	rev          Revision
	token        Token // 0 while it waits
	sinceUnixMS  int64
	watch        Revision // the Change.Watch that its session last received; only in the lead entry
	permits, of  uint32
	mode         Mode   // of its key; permits and of are those of the mode
	holding      bool   // see lock.boundary
	notice       bool   // it asks for a notice
	told         bool   // it has received the notice
	try          bool   // it waits for the answer of a stay; see stay.go
	resumed      bool   // its session has resumed it, and learns from each Change what it includes
	extra        *extra // nil for most entries
}

// extra holds the fields that few requests have. All entries of a request share it.
type extra struct {
	entries  []*entry // ascending by key; nil for a single key
	owner    Number
	inner    Number // of an upgrade, see Command.Inner
	value    []byte // never changed, so results may share it
	seq      uint64 // the Seq of the last SetValue; zero means none
	delayMS  uint32
	upgrades bool           // see Machine.upgradable
	inside   uint16         // see Machine.stuck; not replicated
	pending  *pendingSearch // nil if no search for a deadlock is to be continued
	// the requests of the session that are listed for the same one, with lower and higher numbers
	elder, younger *entry
	stay           *stay // nil unless the request is sticky
}

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

func (s *session) join(e *entry) {
	s.requests[e.number] = e
	s.append(e)
	s.own(e)
	e.connect(1)
}

func (s *session) leave(e *entry) {
	e.connect(-1)
	s.unlink(e)
	s.disown(e)
	delete(s.requests, e.number)
}

func (m *Machine) pushOne(l *lock, mode Mode, permits, of uint32, s *session, c *view, rev Revision,
	x *extra) *entry {
	e := m.spareEntry()
	e.lock, e.session, e.number, e.rev, e.permits, e.of = l, s, c.Number, rev, permits, of
	e.mode, e.notice, e.try, e.extra = mode, c.notice || c.sticky, c.try, x
	m.enqueue(e)
	return e
}

func (m *Machine) enqueue(e *entry) {
	l := e.lock
	m.lockChanges(l)
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
	m.arrives(l, e)
	m.sum += e.hash()
	m.counts.Entries++
	if e.sticky() {
		m.sticky++
	}
	switch {
	case e.token != 0: // it is restored from a snapshot
		l.held++
	default:
		l.waiting++
		m.counts.Waiters++
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
	m.lockChanges(l)
	if e.ahead == nil {
		l.first = e.after
	} else {
		e.ahead.after = e.after
	}
	if e.after == nil {
		l.last = e.ahead
	} else {
		e.after.ahead = e.ahead
		m.touch(e.after)
	}
	if l.boundary != nil && l.boundary.upgrades() {
		m.touch(l.boundary) // it may have watched e over its own hold
	}
	m.removed(l, e)
	switch {
	case e.token != 0:
		l.held--
	default:
		l.waiting--
		m.counts.Waiters--
		if e.try {
			l.tries--
		}
	}
	m.sum -= e.hash()
	m.counts.Entries--
	if e.sticky() {
		m.sticky--
	}
	if l.first == nil && l.data == nil {
		m.dropLock(l)
	}
	m.recycleEntry(e)
}

func (m *Machine) touch(e *entry) { m.touched = append(m.touched, e.lead()) }

// all returns the entries of e's request. If there is only one, the result is a slice of room, so
// that the call does not allocate.
func (e *entry) all(room *[1]*entry) []*entry {
	if e.extra != nil && e.extra.entries != nil {
		return e.extra.entries
	}
	room[0] = e
	return room[:]
}

func (e *entry) lead() *entry { return e.all(new([1]*entry))[0] }

// fire completes a command that removed entries or ended the grace. It grants the touched requests
// that need not wait any more. Then it ends the requests with Try that still wait and wait for no
// stay. If that touches further requests, it begins again. At last it appends all changed requests
// to m.fired.
func (m *Machine) fire() {
	if len(m.touched) == 0 && len(m.contested) == 0 {
		return // the usual case; visited is empty, too
	}
	m.grantTouched()
	for m.endTries() {
		m.grantTouched()
	}
	for _, e := range inOrderOfPlace(m.visited) {
		if e.token == 0 {
			watch := m.watches(e)
			if watch == e.watch {
				continue
			}
			e.watch = watch
		}
		m.fired = append(m.fired, e.change())
	}
	clear(m.visited)
	m.visited = emptied(m.visited)
}

// grantTouched visits the touched requests in the order of their places. This order is part of the
// rules, because it determines the tokens.
func (m *Machine) grantTouched() {
	for _, e := range inOrderOfPlace(m.touched) {
		if e.token != 0 {
			continue // already visited
		}
		if m.graceOver && m.stuck(e) == nil {
			m.grant(e)
		}
		m.visited = append(m.visited, e)
	}
	clear(m.touched)
	m.touched = emptied(m.touched)
}

// inOrderOfPlace sorts the requests that still exist, each once, to the front of all.
func inOrderOfPlace(all []*entry) []*entry {
	live := all[:0]
	for _, e := range all {
		if e.lock != nil {
			live = append(live, e)
		}
	}
	slices.SortFunc(live, byPlace)
	return slices.Compact(live)
}

// endTries ends the requests with Try that wait in the contested queues and do not wait only for
// stays. It reports whether it has visited one. It visits them in the order of their places. The
// end of one of them can make room for the next one, which then goes on. It can also leave only
// stays inside, for whose answers the others wait.
func (m *Machine) endTries() bool {
	var all []*entry
	slices.SortFunc(m.contested, func(a, b *lock) int { return cmp.Compare(a.position, b.position) })
	for _, l := range slices.Compact(m.contested) {
		for e := l.boundary; e != nil && e.try && l.owned(); e = e.after {
			all = append(all, e)
		}
	}
	clear(m.contested)
	m.contested = emptied(m.contested)
	slices.SortFunc(all, func(a, b *entry) int {
		return cmp.Or(byPlace(a, b), strings.Compare(a.lock.key, b.lock.key))
	})
	var blocker *entry // of the previous request; no end of a request changes it
	for _, e := range all {
		if e.lock != nil && !e.holding { // its lock is still owned, because only waiting requests have ended
			if blocker == nil || blocker.lock != e.lock || blocker.token == 0 || blocker.stays() {
				blocker = m.blocker(e.lock, nil)
			}
			m.endTry(e, blocker.describe())
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

// watches returns the place of the entry that e's request waits for. It is the entry directly ahead
// of the request in the first queue in which the request must wait, but never the hold that the
// request upgrades. Zero means that only the grace delays the request.
func (m *Machine) watches(e *entry) Revision {
	stuck := m.stuck(e)
	switch {
	case stuck == nil:
		return 0
	case stuck.ahead == stuck.upgraded():
		return stuck.ahead.ahead.rev
	}
	return stuck.ahead.rev
}

// Of the entries of e's request, stuck returns the first one that is not inside, or nil. An entry
// stays inside until it is removed, so no entry is visited again after it was found inside.
func (m *Machine) stuck(e *entry) *entry {
	if e.extra == nil || e.extra.entries == nil {
		if m.visits++; e.holding {
			return nil
		}
		return e
	}
	for x := e.extra; int(x.inside) < len(x.entries); x.inside++ {
		if m.visits++; !x.entries[x.inside].holding {
			return x.entries[x.inside]
		}
	}
	return nil
}

func (e *entry) owner() *entry {
	if e.extra == nil {
		return nil
	}
	return e.session.requests[e.extra.owner]
}

func (e *entry) places() uint32 { return uint32(len(e.all(new([1]*entry)))) }

// modes returns the modes of e's request in the order of its keys, or nil if Permits and Of state
// them: if all its keys are exclusive or shared, or if it is for permits.
func (e *entry) modes() (modes []Mode) {
	all := e.all(new([1]*entry))
	other := func(o *entry) bool { return o.mode != e.mode }
	if e.mode == ModePermits || (e.mode == ModeX || e.mode == ModeIS) && !slices.ContainsFunc(all, other) {
		return nil
	}
	for _, each := range all {
		modes = append(modes, each.mode)
	}
	return modes
}

// grant returns what the hold e includes.
func (e *entry) grant() *Grant {
	all := e.all(new([1]*entry))
	g := &Grant{Key: all[0].lock.key, Modes: e.modes(), Delay: e.delay(), Value: e.value()}
	if g.Modes == nil {
		g.Permits, g.Of = e.permits, e.of
	}
	for _, each := range all[1:] {
		g.Keys = append(g.Keys, each.lock.key)
	}
	return g
}

func (e *entry) value() []byte {
	if e.extra == nil {
		return nil
	}
	return e.extra.value
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

// mayStay reports whether e is a stay, or is not granted yet and asks for one.
func (e *entry) mayStay() bool { return e.stays() || e.sticky() && e.token == 0 }

func (m *Machine) grant(e *entry) {
	token := Token(m.bump())
	m.reserve(e)
	m.unsearched.drop(e)
	e.watch = 0
	wanted := false
	for _, each := range e.all(new([1]*entry)) {
		m.grantOne(each, token)
		wanted = wanted || each.lock.boundary != nil
	}
	if e.notice && wanted {
		m.markNoticed(e)
		m.askFromBirth(e)
	}
	m.noteGrant(e)
}

// reserve reserves tokens for a sticky request that is being granted. It never lifts the revision
// above the ceiling. If no tokens can be reserved, the request is granted like one that is not
// sticky.
func (m *Machine) reserve(e *entry) {
	s := e.stay()
	switch {
	case s == nil:
	case m.rev+StayTokens <= m.ceiling():
		m.rev += StayTokens
		s.last = Token(m.rev)
	default:
		e.lock.stays--
	}
}

// ceiling returns the revision that a group would begin with if it were founded at the last wall
// stamp. No command takes many revisions beyond it. Otherwise the revisions of a group that is
// founded soon could be lower.
func (m *Machine) ceiling() Revision {
	return Revision(min(m.wallUnixMS, maxFoundedUnixMS)) << revisionBits
}

func (m *Machine) grantOne(e *entry, token Token) {
	m.lockChanges(e.lock)
	if e.linksBack() {
		e.lock.links--
	}
	m.sum -= e.hash()
	e.token, e.sinceUnixMS = token, m.wallUnixMS
	m.sum += e.hash()
	e.session.held++
	e.lock.waiting--
	e.lock.held++
	if e.notice && !e.told {
		e.lock.notices++
	}
	e.lock.index.add(e)
	if b := e.lock.boundary; b != nil && b.try {
		m.contested = append(m.contested, e.lock)
	}
	m.counts.Waiters--
	if e.try {
		e.try = false
		e.lock.tries--
	}
}

func (e *entry) change() Change {
	c := Change{Session: e.session.id, Number: e.number, Token: e.token, Watch: e.watch, Wanted: e.told}
	if s := e.stay(); s != nil {
		c.Last, c.Asked = s.last, s.asked
	}
	if e.resumed {
		c.Grant = e.grant()
	}
	return c
}

func (e *entry) describe() Holder {
	return Holder{
		Session: e.session.id, Record: e.session.record, Token: e.token, SinceUnixMS: e.sinceUnixMS,
		Waiters: int(e.lock.waiting), Value: e.value(), Kept: e.stays(),
	}
}

func byPlace(a, b *entry) int { return cmp.Compare(a.rev, b.rev) }

// permitsLike reports whether two entries of one request are for the same permits of a semaphore,
// or both for none.
func (e *entry) permitsLike(o *entry) bool {
	return e.mode != ModePermits && o.mode != ModePermits ||
		e.mode == o.mode && e.permits == o.permits && e.of == o.of
}
