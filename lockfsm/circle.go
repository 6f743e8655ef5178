package lockfsm

// circleSteps bounds the search for a circle, in entries looked at. Beyond it a circle is not
// found, and its members wait until one gives up.
const circleSteps = 10_000

// maxLinks bounds what is told of a circle.
const maxLinks = 64

// A request waits for all that stand before it in a queue. A lock that is held does not end as long
// as a request waits that was made under it, however far below. So a request that would wait, by
// whatever number of steps, for a lock under which it is made itself would wait for ever. The graph
// of who waits for whom gets new edges only from a request that is new, at the ends of its queues;
// so a circle is found when it is closed, by going backward from the request that would close it,
// which is the youngest of all in the circle. It is refused, and the others go on. Requests made
// under one lock side by side, by several goroutines, are nothing to each other: each can end
// before the other.
//
// What is alone waits for all before it, and what shares waits for those before it that are alone,
// and with them for all before those. Whether it waits for one that shares cannot be said: another
// one's permits may do. Where the search has left such a question open, circle_permits.go answers
// it.

// search is the way backward from one new request.
type search struct {
	m     *Machine
	above map[*entry]bool // the requests under which it is made
	seen  map[*entry]bool
	path  []Link
	steps int
	open  bool // it has passed over a request of which it cannot say whether it is waited for
}

// circular reports whether the new request of c would close a circle, and leaves it in m.circle.
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

// owner returns the request under which e's was made, or nil if there was none or it is over.
func (e *entry) owner() *entry {
	if e.rest == nil {
		return nil
	}
	return e.session.requests[e.rest.owner]
}

// behind looks at one queue at the end of which the new request would stand.
func (f *search) behind(s *session, key []byte, c *view) bool {
	l := f.m.locks[string(key)]
	return l != nil && !l.takes(c) && f.waits(s, l, l.last, c.permits == 0)
}

// waits looks at all that somebody of session s waits for in l's queue, where e is the last before
// him, and alone says whether he wants the lock for himself. Where the search has been before, it
// has seen the rest of the queue too.
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

// of looks at what keeps a request: what it waits for itself, but not in except, and what those
// wait for that were made under it.
func (f *search) of(e *entry, except *lock) bool {
	if e.token == 0 {
		for _, each := range e.all(new([1]*entry)) {
			if !each.inside && each.lock != except && f.waits(each.session, each.lock, each.ahead, each.permits == 0) {
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
