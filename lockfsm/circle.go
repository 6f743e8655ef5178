package lockfsm

// circleSteps bounds the entries that a search visits. The members of a circle beyond it wait until
// one gives up.
const circleSteps = 10_000

// maxLinks bounds the part of a circle that a result reports.
const maxLinks = 64

// A request waits for every request before it in a queue. A held lock is not released while a
// request that was made under it, directly or indirectly, still waits. So a request would wait
// forever if it waits, through any number of other requests, for a lock under which it was made
// itself. Only a new request adds edges to the wait-for graph, at the ends of its queues. So a
// backward search from each new request finds every circle at the moment when it would be closed,
// and the request that would close it is refused. Requests that several goroutines make
// concurrently under one lock do not wait for each other, because each can end before the other.
//
// An exclusive request waits for all before it. A shared request waits for the exclusive ones
// before it, and so for all before those. Whether it waits for another shared request depends on
// the permits that further requests return. circle_permits.go decides these cases.

type search struct {
	m     *Machine
	above map[*entry]bool // the requests under which it is made
	seen  map[*entry]bool
	path  []Link
	steps int
	open  bool // the search has skipped a request for which the new one may wait
}

// circular reports whether the new request of c would close a circle, which it stores in m.circle.
func (m *Machine) circular(s *session, c *view) bool {
	f := search{m: m, above: map[*entry]bool{}, seen: map[*entry]bool{}}
	for e := s.requests[c.owner]; e != nil; e = e.owner() {
		f.above[e] = true
	}
	found := f.behind(s, c.key, c)
	for more := c.more; more.left > 0 && !found; {
		found = f.behind(s, more.next(), c)
	}
	m.circle = f.path[:min(len(f.path), maxLinks)]
	return found || (f.open || f.steps >= circleSteps) && m.circularByPermits(s, c)
}

// owner returns the request under whose lock the request of e was made, or nil if there is none or
// it has ended.
func (e *entry) owner() *entry {
	if e.extra == nil {
		return nil
	}
	return e.session.requests[e.extra.owner]
}

func (f *search) behind(s *session, key []byte, c *view) bool {
	l := f.m.locks[string(key)]
	return l != nil && !l.takes(c) && f.waits(s, l, l.last, c.permits == 0)
}

// waits searches the part of l's queue for which a request of session s waits. The entry e is the
// last one before that request; alone is true if the request is exclusive. The search of a queue
// ends at an entry that was visited before, because the rest of the queue was visited with it.
func (f *search) waits(s *session, l *lock, e *entry, alone bool) bool {
	f.path = append(f.path, Link{Session: s.id, Record: s.record, Key: l.key})
	for ; e != nil && !f.seen[e] && f.steps < circleSteps; e = e.ahead {
		f.steps++
		if alone = alone || e.permits == 0; !alone {
			f.open = true
			continue
		}
		f.seen[e] = true
		if lead := e.lead(); f.above[lead] || f.of(lead, l) {
			return true
		}
	}
	f.path = f.path[:len(f.path)-1]
	return false
}

// of continues the search with the requests for which e's request waits, except in the queue of the
// lock except, and with those for which the requests made under it wait.
func (f *search) of(e *entry, except *lock) bool {
	if e.token == 0 {
		for _, each := range e.all(new([1]*entry)) {
			if !each.holding && each.lock != except && f.waits(each.session, each.lock, each.ahead, each.permits == 0) {
				return true
			}
		}
	}
	for _, below := range e.session.owned[e.number] {
		if f.steps++; f.steps < circleSteps && f.of(below, nil) {
			return true
		}
	}
	return false
}
