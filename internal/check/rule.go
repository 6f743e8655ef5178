package check

import (
	"fmt"
	"math"
)

// Caller names a caller that can hold a lock: a call on a node. The program that uses the judges
// chooses the numbers, which must differ for two incarnations of a node.
type Caller struct {
	Node string
	Op   uint64
}

func (w Caller) String() string { return fmt.Sprintf("%s#%d", w.Node, w.Op) }

// Terms is the part of a lock that a request asks for, as in lockfsm.Command. The zero value is the
// whole lock. Permits 1 with Of 0 is a share; any number of requests may hold a share together. All
// other values are permits of a semaphore.
type Terms struct{ Permits, Of uint32 }

// Alone reports whether the lock is held exclusively.
func (t Terms) Alone() bool { return t.Permits == 0 }

// Beside reports whether two requests can hold the lock together if no other request holds it.
func (t Terms) Beside(other Terms) bool {
	var both sum
	both.add(t)
	both.add(other)
	return both.fits()
}

func (t Terms) count() (permits, of uint64) {
	switch {
	case t.Of != 0:
		return uint64(t.Permits), uint64(t.Of)
	case t.Permits != 0:
		return 1, math.MaxUint64
	}
	return 1, 1
}

// sum adds the permits of several holders. They may hold the lock together if the sum is at most
// the lowest total that any of them names.
type sum struct {
	taken, least uint64
	many         bool
}

func (s *sum) add(t Terms) {
	permits, of := t.count()
	if s.taken == 0 || of < s.least {
		s.least = of
	}
	s.many = s.taken > 0
	s.taken += permits
}

func (s *sum) fits() bool { return !s.many || s.taken <= s.least }

// rule is the part that all judges share. It keeps the first violation.
type rule struct{ err error }

// Err returns the first violation, or nil.
func (r *rule) Err() error { return r.err }

func (r *rule) broken(format string, args ...any) error {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	return r.err
}

// Front distinguishes the first replica that applies an entry from the later ones. Events on which
// all replicas agree, such as grants, must be reported to a judge of order only once, when the
// first replica applies the entry. The zero value is ready for use.
type Front struct{ applied map[uint64]uint64 }

// First reports whether no replica of the group has applied index before.
func (f *Front) First(group, index uint64) bool {
	if index <= f.applied[group] {
		return false
	}
	if f.applied == nil {
		f.applied = map[uint64]uint64{}
	}
	f.applied[group] = index
	return true
}
