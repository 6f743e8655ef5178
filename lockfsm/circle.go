package lockfsm

// A request waits for every request before it in a queue. A hold does not end while a waiting
// request names it as its owner, directly or through further owners. So a request that waits for
// one of its owners, through any number of steps, would wait forever. When a request arrives, the
// machine searches backward from the request, and refuses it if the search finds a circle. It does
// not search if no request that can delay another queue waits behind an owner (see delaysNone). A
// later search is not needed, because only a new request can close a circle. Requests with the same
// owner do not wait for each other, since either can end first.
//
// An upgrade is a new request, too. Its owner is its hold. If it was made under another lock, it
// names that as Inner, and then it has two owners: neither ends before it. It waits for the inside
// entries except its own hold, and the requests behind it wait for it. A shared request behind it
// does not wait for its hold, because the two fit beside each other when the upgrade has ended.
// Only this hold is left out of a walk.
//
// An exclusive request waits for all requests before it. A shared or semaphore request waits for
// the exclusive requests before it, and so for all requests before those. It waits for another
// shared or semaphore request only if the permits that all other requests return are too few.
// circle_permits.go decides these cases.

// verdict is the result of a search.
type verdict uint8

const (
	isFree    verdict = iota + 1 // the request is in no deadlock
	isCircle                     // it causes a deadlock
	isDelayed                    // an earlier deadlock delays it
	beyond                       // the search has reached its bound
	undecided                    // the walk does not suffice; only as its result
)

type search struct {
	locks  *lockTable
	owners owners          // of the new request
	above  map[*entry]bool // the owners of the new request, their owners, and so on
	seen   map[*entry]bool
	path   []Link
	steps  int
	limit  int
	open   bool // the search has skipped a request that the new request may wait for
}

// walk decides whether the new request of c would wait for one of its owners, as far as a walk can.
// It returns the path to the owner.
func (m *Machine) walk(s *session, c *view) ([]Link, verdict) {
	f := search{locks: &m.locks, owners: c.owners(s), above: map[*entry]bool{}, seen: map[*entry]bool{},
		limit: m.walkVisits}
	awaited := c.more.left > 0
	for due := f.owners[:]; len(due) > 0 && f.steps < f.limit; {
		e := due[len(due)-1]
		if due = due[:len(due)-1]; e == nil || f.above[e] {
			continue
		}
		f.above[e] = true
		for _, each := range e.all(new([1]*entry)) {
			f.steps++
			awaited = awaited || each.lock.key == string(c.key) || each.lock.links > 0 && each.isAwaited()
		}
		above := e.owners()
		due = append(due[:len(due):len(due)], above[:]...)
	}
	defer func() { m.visit(f.steps) }()
	if f.steps >= f.limit {
		return nil, beyond
	}
	if !awaited {
		return nil, isFree
	}
	found := !c.upgrades && f.behind(s, c.key, c.permits, c.of)
	if c.upgrades {
		hold := s.request(c.owner)
		found = !hold.lock.alone(hold) && f.waits(s, hold.lock, hold.lock.lastInside(), true, hold)
	}
	for more := c.more; more.left > 0 && !found; {
		permits, of := more.terms(c)
		found = f.behind(s, more.next(), permits, of)
	}
	switch {
	case found:
		return f.path[:min(len(f.path), maxLinks)], isCircle
	case f.open || f.steps >= f.limit:
		return nil, undecided
	}
	return nil, isFree
}

func (c *view) owners(s *session) owners { return owners{s.request(c.owner), s.request(c.inner)} }

func (f *search) behind(s *session, key []byte, permits, of uint32) bool {
	l := f.locks.byKey[string(key)]
	return l != nil && !l.takes(permits, of) && f.waits(s, l, l.tail(), permits == 0, nil)
}

// This method searches l's queue, and reports whether it has found a circle. It visits the entries
// for which a request of session s waits. e is the last entry before that request. alone means that
// the request is exclusive. except is the hold that the request upgrades. A visited entry needs no
// second visit, because the first visit continued to the front of the queue. This is not so after a
// request with Try, which does not wait for the entries before it.
func (f *search) waits(s *session, l *lock, e *entry, alone bool, except *entry) bool {
	if l.delaysNone(f.owners) {
		return false
	}
	f.path = append(f.path, Link{Session: s.id, Record: s.record, Key: l.key})
	for ; e != nil && (e.try || !f.seen[e]) && f.steps < f.limit; e = e.ahead {
		f.steps++
		switch {
		case !alone && e.mode != ModeX:
			f.open = true
			continue
		case f.seen[e]:
			continue
		case e == except:
			f.open = true // a later walk may stop before it
			continue
		case !alone:
			except = e.upgraded()
		}
		alone = alone || !e.try
		f.seen[e] = true
		if lead := e.lead(); f.above[lead] || f.of(lead, l) {
			return true
		}
	}
	f.path = f.path[:len(f.path)-1]
	return false
}

// This method searches the requests that must end before the request of e can end, and reports
// whether it has found a circle. It searches all queues in which the request of e waits, except the
// queue of the lock that is passed as except. It also searches the requests that name the request
// of e as their owner. A waiting request with Try waits for the answer of a stay, and for no other
// request.
func (f *search) of(e *entry, except *lock) bool {
	if e.token == 0 && !e.try {
		for _, each := range e.all(new([1]*entry)) {
			if f.steps++; each.holding || each.lock == except {
				continue
			}
			if f.waits(each.session, each.lock, each.ahead, each.mode == ModeX, each.upgraded()) {
				return true
			}
		}
	}
	for below := e.firstBelow(); below != nil; below = e.nextBelow(below) {
		if f.steps++; f.steps >= f.limit {
			return false
		}
		if f.of(below, nil) {
			return true
		}
	}
	return false
}
