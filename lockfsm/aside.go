package lockfsm

import "math"

// sessionChanges is called before anything changes that a snapshot says of s, and before s goes.
func (m *Machine) sessionChanges(s *session) {
	if s.seen != m.captures {
		m.capture.setSessionAside(s)
	}
}

// lockChanges is called before anything changes that a snapshot says of l, its queue and the entries in it, and before l goes.
func (m *Machine) lockChanges(l *lock) {
	if l.seen != m.captures {
		m.capture.setLockAside(l)
	}
}

func (c *Capture) setSessionAside(s *session) {
	s.seen = c.m.captures
	c.scratch = s.appendTo(c.scratch[:0])
	c.aside.push(aside{uint64(s.id), copied(c.scratch)})
}

func (c *Capture) setLockAside(l *lock) {
	l.seen = c.m.captures
	c.scratch = c.m.appendLock(c.scratch[:0], l)
	c.aside.push(aside{l.place, copied(c.scratch)})
}

// aside is a session or a lock as it was before it changed, encoded; a session without its ID.
type aside struct {
	place uint64 // the ID of a session, the place of a lock
	body  []byte
}

// asides is a heap: none is lower than the one at half its index, counted from 1.
type asides []aside

// first returns the lowest place, and one above all places if there is none.
func (h asides) first() uint64 {
	if len(h) == 0 {
		return math.MaxUint64
	}
	return h[0].place
}

func (h *asides) push(a aside) {
	all := append(*h, a)
	*h = all
	i := len(all) - 1
	for up := (i - 1) / 2; i > 0 && a.place < all[up].place; up = (i - 1) / 2 {
		all[i] = all[up]
		i = up
	}
	all[i] = a
}

func (h *asides) pop() aside {
	lowest, n := (*h)[0], len(*h)-1
	last := (*h)[n]
	(*h)[n] = aside{}
	all := (*h)[:n]
	*h = all
	i := 0
	for down := 1; down < n; down = 2*i + 1 {
		if down+1 < n && all[down+1].place < all[down].place {
			down++
		}
		if last.place < all[down].place {
			break
		}
		all[i] = all[down]
		i = down
	}
	if n > 0 {
		all[i] = last
	}
	return lowest
}
