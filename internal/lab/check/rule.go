package check

import (
	"fmt"
	"math"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Caller identifies a call on a node that can hold a lock. The user of the judges chooses Op, which
// must differ between two incarnations of a node.
type Caller struct {
	Node string
	Op   uint64
}

func (w Caller) String() string { return fmt.Sprintf("%s#%d", w.Node, w.Op) }

// Terms is how much of a lock a request takes, as in lockfsm.Command. The zero value means the
// exclusive lock. Permits 1 with Of 0 means a shared lock. All other values are for a semaphore.
type Terms struct{ Permits, Of uint32 }

// Alone reports whether the lock is held exclusively.
func (t Terms) Alone() bool { return t.Permits == 0 }

// Beside reports whether requests with the terms t and other may hold a lock together, if no
// other request holds it.
func (t Terms) Beside(other Terms) bool {
	var both sum
	both.add(t)
	both.add(other)
	return both.fits()
}

// includes reports whether a request with the terms t excludes each mode that one with the terms
// other excludes.
func (t Terms) includes(other Terms) bool {
	for mode := lockfsm.ModeX; mode <= lockfsm.ModeU; mode++ {
		permits, of := mode.Terms()
		if third := (Terms{permits, of}); t.Beside(third) && !other.Beside(third) {
			return false
		}
	}
	return true
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

type rule struct{ err error }

// Err returns the first violation, or nil.
func (r *rule) Err() error { return r.err }

func (r *rule) broken(format string, args ...any) error {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	return r.err
}

// Front finds the first replica that applies an entry. A judge that depends on the order of events
// needs only one report of each event: when the first replica applies it.
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
