package check

import "fmt"

// Who is somebody who can hold a lock: a call on a node. What the numbers mean is the caller's affair; they must tell two lives of one
// node apart.
type Who struct {
	Node string
	Op   uint64
}

func (w Who) String() string { return fmt.Sprintf("%s#%d", w.Node, w.Op) }

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

// Front tells the first replica that applies an entry from those that follow it. What all replicas agree on, such as grants, is to be
// told to the judges of order once: by whoever is in front. The zero value is ready for use.
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
