package lockfsm

// circleSteps bounds the entries that a search visits. The members of a circle beyond it wait until
// one gives up.
const circleSteps = 10_000

// maxLinks bounds the part of a circle that a result reports.
const maxLinks = 64

// A request waits for every request before it in a queue. A held lock does not end while a request
// waits that was made under it, however far below. So a request that waits, through any number of
// steps, for a lock under which it was made would wait forever. Only a new request adds edges to
// the wait-for graph, at the ends of its queues. So a circle is found when it is closed, by a
// backward search from the request that closes it, which is then refused. Requests that several
// goroutines make side by side under one lock do not wait for each other: each can end before the
// other.
//
// An exclusive request waits for all before it. A shared request waits for the exclusive ones
// before it, and so for all before those. Whether it waits for another shared one is undecided
// here: the permits of a third may suffice. circle_permits.go answers the questions that this
// search leaves open.

type search struct {
	m     *Machine
	above map[*entry]bool // the requests under which it is made
	seen  map[*entry]bool
	path  []Link
	steps int
	open  bool // it has skipped a request that the new one may wait for
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

// owner returns the request under which e's was made, or nil if there was none or it is over.
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

// waits searches the part of l's queue that a request of session s waits for. e is the last entry
// before that request, and alone reports whether it is exclusive. An entry that was seen ends the
// search: the rest of the queue was seen with it.
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

// of searches what keeps a request from ending: what it waits for, except in the queue of except,
// and what the requests made under it wait for.
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
