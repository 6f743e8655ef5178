package lockfsm

import "slices"

// circleSteps bounds the search for a circle, in entries looked at. Beyond it a circle is not found, and its members wait until one gives up.
const circleSteps = 10_000

// maxLinks bounds what is told of a circle.
const maxLinks = 64

// A request waits for all that stand before it in a queue, and so does its owner: the request under whose lock it was made, and with it all
// others that were made under that lock. An owner that waits for itself, by whatever number of steps, waits for ever. The graph of who waits
// for whom gets new edges only from a request that is new, at the ends of its queues; so a circle is found when it is closed, by going backward
// from the request that would close it, which is the youngest of all in the circle. It is refused, and the others go on.
//
// What is alone waits for all before it, and what shares waits for those before it that are alone, and with them for all before those. Whether
// it waits for one that shares cannot be said: another one's permits may do. So a circle of permits alone is not found.

// search is the way backward from one new request.
type search struct {
	m     *Machine
	owner owner
	seen  map[*entry]bool
	path  []Link
	steps int
}

type owner struct {
	session *session
	number  Number
}

func (e *entry) owner() owner {
	if e.rest != nil && e.rest.owner != 0 {
		return owner{e.session, e.rest.owner}
	}
	return owner{e.session, e.number}
}

// circular reports whether the new request of c would close a circle, and leaves it in m.circle.
func (m *Machine) circular(s *session, c *view) bool {
	if bug("deadlock-not-seen") {
		return false
	}
	f := search{m: m, owner: owner{s, c.owner}, seen: map[*entry]bool{}}
	found := f.behind(s, c.key, c)
	for more := c.more; more.left > 0 && !found; {
		found = f.behind(s, more.next(), c)
	}
	m.circle = f.path[:min(len(f.path), maxLinks)]
	return found
}

// behind looks at one queue at the end of which the new request would stand.
func (f *search) behind(s *session, key []byte, c *view) bool {
	l := f.m.locks[string(key)]
	return l != nil && !l.takes(c) && f.waits(s, l, l.last, c.permits == 0)
}

// waits looks at all that somebody of session s waits for in l's queue, where e is the last before him, and alone says whether he wants the lock
// for himself. Where the search has been before, it has seen the rest of the queue too.
func (f *search) waits(s *session, l *lock, e *entry, alone bool) bool {
	f.path = append(f.path, Link{Session: s.id, Record: s.record, Key: l.key})
	for ; e != nil && !f.seen[e] && f.steps < circleSteps; e = e.ahead {
		f.steps++
		if alone = alone || e.permits == 0; !alone {
			continue
		}
		f.seen[e] = true
		if e.owner() == f.owner || f.leads(e.lead(), l) {
			return true
		}
	}
	f.path = f.path[:len(f.path)-1]
	return false
}

// leads looks at what the owner of e waits for elsewhere than before e in l.
func (f *search) leads(e *entry, l *lock) bool {
	if f.of(e, l) {
		return true
	}
	o := e.owner()
	if root := o.session.requests[o.number]; root != nil && root != e && f.of(root, nil) {
		return true
	}
	return slices.ContainsFunc(o.session.owned[o.number], func(other *entry) bool { return other != e && f.of(other, nil) })
}

// of looks at what one request waits for, but not in except.
func (f *search) of(e *entry, except *lock) bool {
	if e.token != 0 {
		return false
	}
	if e.rest == nil || e.rest.entries == nil {
		return f.ofOne(e, except)
	}
	return slices.ContainsFunc(e.rest.entries, func(each *entry) bool { return f.ofOne(each, except) })
}

func (f *search) ofOne(e *entry, except *lock) bool {
	return !e.inside && e.lock != except && f.waits(e.session, e.lock, e.ahead, e.permits == 0)
}
