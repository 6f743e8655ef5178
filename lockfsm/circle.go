package lockfsm

// circleSteps bounds the entries that a search visits. A deadlock that is not found within this
// bound lasts until one of its requests is cancelled.
const circleSteps = 10_000

// maxLinks bounds the links of a circle that a result reports.
const maxLinks = 64

// A request waits for every request before it in a queue. A hold does not end while a waiting
// request names it as its owner, directly or through further owners. So a request that waits,
// through any number of steps, for one of its owners would wait forever. Only a new request adds
// edges to the wait-for graph, at the ends of its queues. So a circle is found when its last
// request arrives: the machine searches backward from this request, and refuses it if the search
// finds a circle. Requests with the same owner do not wait for each other, since each can end
// before the others.
//
// An exclusive request waits for all requests before it. A request that is not exclusive waits for
// the exclusive requests before it, and so for all requests before those. This search cannot decide
// whether it waits for another request that is not exclusive, since a third request may return
// enough permits. circle_permits.go decides these cases.

type search struct {
	m     *Machine
	above map[*entry]bool // the owner of the new request, the owner of that owner, and so on
	seen  map[*entry]bool
	path  []Link
	steps int
	open  bool // the search has skipped a request that the new request may wait for
}

// circular reports whether the new request of c would wait for one of its owners. It stores the
// path to the owner in m.circle.
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

// owner returns the request that e's request names as its owner, or nil if it names none or the
// owner has ended.
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

// waits searches the entries of l's queue that a request of session s waits for, and reports
// whether it has found a circle. e is the last entry before that request, and alone means that the
// request is exclusive. The search ends at an entry that was visited before, because all entries
// before it were then visited, too.
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

// of searches the requests that must end before e's request can end, and reports whether it has
// found a circle. It searches all queues in which e waits, except the queue of the given lock. It
// also searches the queues in which the requests with the owner e wait.
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
