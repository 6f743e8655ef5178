package check

import (
	"fmt"
	"math"
)

// Who is somebody who can hold a lock: a call on a node. What the numbers mean is the caller's
// affair; they must tell two lives of one node apart.
type Who struct {
	Node string
	Op   uint64
}

func (w Who) String() string { return fmt.Sprintf("%s#%d", w.Node, w.Op) }

// Terms says how much of a lock somebody takes, as lockfsm.Command does: the zero value is the
// whole lock, Permits 1 of 0 is a share of it beside any number of others, and else it is a
// semaphore's.
type Terms struct{ Permits, Of uint32 }

// Alone reports whether nobody else can hold the lock meanwhile.
func (t Terms) Alone() bool { return t.Permits == 0 }

// Beside reports whether two can hold the lock at the same time, if nobody else does.
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

// sum adds up a row of those who hold a lock: they fit beside each other if all their permits are
// no more than any of them says there are.
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

// rule is the part that all judges share: the first violation stays.
type rule struct{ err error }

// Err returns the first violation, or nil.
func (r *rule) Err() error { return r.err }

// broken notes a violation, if it is the first, and returns the first.
func (r *rule) broken(format string, args ...any) error {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	return r.err
}

// Front tells the first replica that applies an entry from those that follow it. What all replicas
// agree on, such as grants, is to be told to the judges of order once: by whoever is in front. The
// zero value is ready for use.
type Front struct{ applied map[uint64]uint64 }

// First reports whether index is the next of its group that nobody has applied before.
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
