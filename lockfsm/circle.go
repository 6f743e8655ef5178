package lockfsm

// An Acquire searches with these bounds, so that no request makes much work for every replica. If
// they do not suffice, the request waits, and the leader searches on (unsearched.go).
const (
	walkVisits   = 96  // of the walk in this file
	permitVisits = 192 // of the search in circle_permits.go
)

const maxLinks = 64

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

type search struct {
	m      *Machine
	owners owners          // of the new request
	above  map[*entry]bool // the owners of the new request, their owners, and so on
	seen   map[*entry]bool
	path   []Link
	steps  int
	limit  int
	open   bool // the search has skipped a request that the new request may wait for
}

// circular reports whether the new request of c would wait for one of its owners. It stores the
// path to the owner in m.circle. If unsearched is true, the search ended at its bound.
func (m *Machine) circular(s *session, c *view) (found, unsearched bool) {
	f := search{m: m, owners: c.owners(s), above: map[*entry]bool{}, seen: map[*entry]bool{}, limit: m.walkVisits}
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
	defer func() { m.visits += f.steps }()
	if f.steps >= f.limit {
		return false, true
	}
	if !awaited {
		return false, false
	}
	found = !c.upgrades && f.behind(s, c.key, c.permits, c.of)
	if c.upgrades {
		hold := s.requests[c.owner]
		found = !hold.lock.alone(hold) && f.waits(s, hold.lock, hold.lock.lastInside(), true, hold)
	}
	for more := c.more; more.left > 0 && !found; {
		permits, of := more.terms(c)
		found = f.behind(s, more.next(), permits, of)
	}
	m.circle = f.path[:min(len(f.path), maxLinks)]
	switch {
	case found:
		return true, false
	case f.open || f.steps >= f.limit:
		return m.circularByPermits(s, c)
	}
	return false, false
}

// owners are the requests that do not end before a request which was made under them. Nil means
// that there is none.
type owners [2]*entry

func (c *view) owners(s *session) owners { return owners{s.requests[c.owner], s.requests[c.inner]} }

func (e *entry) owners() owners {
	if e.extra == nil {
		return owners{}
	}
	return owners{e.session.requests[e.extra.owner], e.session.requests[e.extra.inner]}
}

// listedFor returns the number of the request in whose list the request is.
func (x *extra) listedFor() Number {
	if x.inner != 0 {
		return x.inner
	}
	return x.owner
}

// firstBelow returns the first request of which e is an owner, or nil.
func (e *entry) firstBelow() *entry {
	if first := e.session.owned[e.number].first; first != nil {
		return first
	}
	return e.unlisted()
}

// nextBelow returns the request after below, see firstBelow.
func (e *entry) nextBelow(below *entry) *entry {
	switch {
	case below.extra.listedFor() != e.number:
		return nil
	case below.extra.younger != nil:
		return below.extra.younger
	}
	return e.unlisted()
}

// unlisted returns the upgrade of e that is listed for another request, or nil.
func (e *entry) unlisted() *entry {
	if u := e.upgrade(); u != nil && u.extra.inner != 0 {
		return u
	}
	return nil
}

// isAwaited reports whether another entry waits behind e in its queue.
func (e *entry) isAwaited() bool {
	if e.holding {
		return e.lock.boundary != nil
	}
	return e.after != nil
}

func (f *search) behind(s *session, key []byte, permits, of uint32) bool {
	l := f.m.locks[string(key)]
	return l != nil && !l.takes(permits, of) && f.waits(s, l, l.last, permits == 0, nil)
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

// Each lock counts the entries that can connect its queue with another one, so that most searches
// for a deadlock end without a visit. With nested limits, thousands of requests may wait, and no
// circle is possible: the innermost limit has no request below it, and no request of the outermost
// one waits under an owner.
//
//   - An entry leads on if its request has several keys, owns a request, or is an upgrade. If no
//     entry of a queue does, they all end one after the other, and no other queue delays them.
//   - A waiting entry links back if its request has several keys, or an owner. If no entry behind a
//     hold does, these entries delay only their own queue.

// leadsOn reports whether e's request waits in another queue, or for the end of another request.
func (e *entry) leadsOn() bool {
	return e.several() || e.upgrades() || e.session.owned[e.number].first != nil
}

// linksBack reports whether the wait of e's request can delay another queue.
func (e *entry) linksBack() bool {
	return e.token == 0 && e.extra != nil && (e.extra.entries != nil || e.extra.owner != 0)
}

func (e *entry) several() bool { return e.extra != nil && e.extra.entries != nil }

// connect counts the entries of e's request, which joins a session, or uncounts them with by -1.
func (e *entry) connect(by int32) {
	leads, links := e.leadsOn(), e.linksBack()
	if !leads && !links {
		return
	}
	for _, each := range e.all(new([1]*entry)) {
		if leads {
			each.lock.leads += by
		}
		if links {
			each.lock.links += by
		}
	}
}

// ownsFirst counts the request for which e is listed, if e is the only one of its list. See
// connect.
func (e *entry) ownsFirst(by int32) {
	if o := e.session.requests[e.extra.listedFor()]; o != nil && !o.several() && !o.upgrades() {
		o.lock.leads += by
	}
}

// delaysNone reports whether all entries of l's queue end without the end of a request in another
// queue. The owners of a new request, which its session does not list yet, do not end before it.
func (l *lock) delaysNone(of owners) bool {
	return l.leads == 0 && (of[0] == nil || of[0].lock != l) && (of[1] == nil || of[1].lock != l)
}

// isFree reports whether the counts show that the waiting request e is in no deadlock. A false
// result shows nothing.
func (e *entry) isFree() bool {
	switch {
	case e.upgrades():
		return false
	case !e.leadsOn() && e.lock.delaysNone(owners{}):
		return true
	}
	for above, n := e.owner(), 0; above != nil; above = above.owner() {
		if n++; n > maxLinks || above.several() || above.upgrades() || above.lock.links > 0 {
			return false // e counts, too, if it waits for a key of its owner
		}
	}
	return true
}
