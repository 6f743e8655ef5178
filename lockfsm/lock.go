package lockfsm

// lock is the queue and the data of one key. It exists while it has an entry or data.
//
// The entries at the front of the queue that may hold the lock together are called inside. They
// wait for no other entry of this queue. Each entry names its permits and a total. An entry fits if
// its permits, added to those of all inside entries, do not exceed the lowest total of all these
// entries. The first entry that does not fit is outside, and so is every entry after it. So a
// waiting writer stops later readers. An entry stays inside until it is removed.
//
// An upgrade is an exception: it comes before the entries that wait, and fits beside its own hold
// (entry.go).
type lock struct {
	key        string
	first      *entry
	*queue     // see own and share
	seen       uint32
	position   uint64
	prev, next *lock
}

// queue is what a lock has besides its first entry. Most locks are held by one exclusive request
// that nothing waits for, and their queues have equal values. So these locks share one queue, which
// never changes. A lock gets a queue of its own before its queue changes. This is not replicated,
// and never affects a result.
type queue struct {
	last     *entry // nil in the shared queue, where it is the first entry
	boundary *entry // the first entry that is not inside; nil if all entries are inside
	waiting  uint32
	held     uint32 // the granted entries
	inside   uint32 // the inside entries
	tries    uint32 // the waiting requests with Try
	taken    uint32
	least    uint32 // the lowest total that an inside entry names
	leasts   uint32 // the number of inside entries that name this lowest total
	leads    int32  // the entries that lead on, see entry.go
	links    int32  // the entries that link back
	stays    uint32 // the inside entries that are stays, or will be when they are granted
	notices  uint32 // the granted entries that asked for a notice and have not received it
	shared   bool
	data     *Data // nil if there is none; replaced, never changed
	index    *insideIndex
}

// sharedQueue returns the queue of a lock that one exclusive request holds.
func sharedQueue() queue {
	return queue{held: 1, inside: 1, taken: 1, least: 1, leasts: 1, shared: true}
}

// tail returns the last entry of l, or nil.
func (l *lock) tail() *entry {
	if l.shared {
		return l.first
	}
	return l.last
}

// own is like Machine.own, for rare changes.
func (l *lock) own() {
	if l.shared {
		l.takeOver(new(queue))
	}
}

func (l *lock) takeOver(q *queue) {
	*q = *l.queue
	q.last, q.shared = l.first, false
	l.queue = q
}

// replaceBy replaces l's own queue by the shared one if that has the same values. It returns the
// replaced queue, or nil.
func (l *lock) replaceBy(shared *queue) (own *queue) {
	if l.shared || l.last != l.first {
		return nil
	}
	q := *l.queue
	if q.last, q.shared = nil, true; q != *shared {
		return nil
	}
	own, l.queue = l.queue, shared
	return own
}

func (l *lock) fits(permits, of uint32) bool {
	return l.taken == 0 || uint64(l.taken)+uint64(permits) <= uint64(min(l.least, of))
}

// takes reports whether a new request with these permits and this total would be inside.
func (l *lock) takes(permits, of uint32) bool {
	return l.boundary == nil && l.fits(termsOf(permits, of))
}

// accepts reports whether e, the first entry that is not inside, can be inside.
func (l *lock) accepts(e *entry) bool {
	if e.upgrades() {
		return l.alone(e.upgraded())
	}
	return l.fits(e.terms())
}

// arrives places e, which has joined the queue, inside or outside.
func (l *lock) arrives(e *entry, w *effort) {
	switch {
	case l.boundary != e.after: // e waits behind the boundary
	case l.accepts(e):
		l.admit(e, w)
	default:
		l.boundary = e
	}
}

func (l *lock) admit(e *entry, w *effort) {
	permits, of := e.terms()
	e.holding = true
	switch {
	case l.taken == 0 || of < l.least:
		l.least, l.leasts = of, 1
	case of == l.least:
		l.leasts++
	}
	l.taken += permits
	if e.mayStay() {
		l.stays++
	}
	if e.awaitsNotice() {
		l.notices++
	}
	l.inside++
	switch {
	case l.index != nil:
		l.index.admit(e)
	case l.inside >= w.indexFrom:
		l.buildIndex(w)
	}
}

// discharge subtracts the permits of e, which has left the queue.
func (l *lock) discharge(e *entry, w *effort) {
	permits, of := e.terms()
	l.taken -= permits
	if e.mayStay() {
		l.stays--
	}
	if e.awaitsNotice() {
		l.notices--
	}
	l.inside--
	if l.index != nil {
		if l.index.discharge(e); l.inside <= indexUntil {
			l.index = nil
		}
	}
	if of != l.least {
		return
	}
	if l.leasts--; l.leasts == 0 {
		l.findLeast(w)
	}
}

// alone reports whether no entry is inside except hold, which may be nil.
func (l *lock) alone(hold *entry) bool {
	if hold != nil && hold.holding {
		return l.taken == upgradablePermits
	}
	return l.taken == 0
}

func (l *lock) lastInside() *entry {
	if l.boundary != nil {
		return l.boundary.ahead
	}
	return l.tail()
}

func (l *lock) entries() int { return int(l.waiting + l.held) }

// holderOf returns the first request other than except that holds the lock. It prefers a request
// that is not a stay. It visits at most namedInside entries.
func (l *lock) holderOf(except *entry, w *effort) (stay *entry) {
	left := namedInside
	for e := l.first; e != nil && e.holding && left > 0; e = e.after {
		w.visit(1)
		left--
		switch {
		case e.token == 0 || e == except:
		case !e.stays() || l.onlyStays():
			return e
		case stay == nil:
			stay = e
		}
	}
	return stay
}

// onlyStays reports whether there are inside entries and all of them are stays. A stay takes one
// permit, and any other entry at least one.
func (l *lock) onlyStays() bool { return l.taken > 0 && l.taken == l.stays }

// owned reports whether a request that is no stay holds the lock. After the grace every sticky
// request inside is granted, so stays counts only granted entries.
func (l *lock) owned() bool { return l.held > l.stays }

// blocker returns the request for which the waiting requests wait: the holder, or the first request
// of the queue, which then waits for another of its keys. An upgrade does not wait for its own
// hold, which is except.
func (l *lock) blocker(except *entry, w *effort) *entry {
	if e := l.holderOf(except, w); e != nil {
		return e
	}
	if l.first == except {
		return except.after
	}
	return l.first
}

// delaysNone reports whether all entries of l's queue end without the end of a request in another
// queue. The owners of a new request, which its session does not list yet, do not end before it.
func (l *lock) delaysNone(of owners) bool {
	return l.leads == 0 && (of[0] == nil || of[0].lock != l) && (of[1] == nil || of[1].lock != l)
}

// onlyStay returns the only entry if it is a stay of another session than s, and has not received
// its notice.
func (l *lock) onlyStay(s *session) *entry {
	if e := l.first; e != nil && e == l.tail() && e.stays() && !e.told && e.session != s {
		return e
	}
	return nil
}

// yieldsTo reports whether the owner of the only entry has been asked to release it, for s or
// another session.
func (l *lock) yieldsTo(s *session) bool {
	e := l.onlyStay(s)
	return e != nil && e.extra.stay.yields
}

func (l *lock) buildIndex(w *effort) {
	l.index = &insideIndex{one: 1}
	for e := l.first; e != nil && e.holding; e = e.after {
		w.visit(1)
		l.index.admit(e)
	}
}

// findLeast sets the lowest total that an inside entry of l names, and how many name it.
func (l *lock) findLeast(w *effort) {
	l.least, l.leasts = noTotal, 0
	if l.index != nil {
		if entries := l.index.totals.First(); entries != nil {
			l.least, l.leasts = uint32(l.index.totals.Lowest()), *entries
		}
		return
	}
	for each := l.first; each != nil && each.holding; each = each.after {
		w.visit(1)
		switch _, of := each.terms(); {
		case of < l.least:
			l.least, l.leasts = of, 1
		case of == l.least:
			l.leasts++
		}
	}
}

// heldWith returns the inside entry of l that is granted with the token, or nil.
func (l *lock) heldWith(token Token, w *effort) *entry {
	if l.index != nil {
		w.visit(1)
		return l.index.granted.Get(uint64(token))
	}
	for e := l.first; e != nil && e.holding; e = e.after {
		if w.visit(1); e.token == token {
			return e
		}
	}
	return nil
}

// reservedBy returns the stay of l that has reserved the token, or nil. A stay reserves the
// StayTokens tokens after its own.
func (l *lock) reservedBy(token Token, w *effort) *entry {
	reserves := func(e *entry) bool {
		return e != nil && e.stays() && e.token < token && token <= e.extra.stay.last
	}
	if l.index != nil {
		w.visit(2)
		for back := range Token(2) {
			if e := l.index.stays.Get(uint64(token/StayTokens - back)); reserves(e) {
				return e
			}
		}
		return nil
	}
	for e := l.first; e != nil && e.holding; e = e.after {
		if w.visit(1); reserves(e) {
			return e
		}
	}
	return nil
}
