package lockfsm

// An Acquire searches with these bounds, so that no request makes much work for every replica. If
// they do not suffice, the request waits, and the leader searches on (unsearched.go).
const (
	walkVisits   = 96  // of the walk in circle.go
	permitVisits = 192 // of the search in circle_permits.go
)

// maxLinks bounds the links of a Result.Circle.
const maxLinks = 64

// effort counts and bounds what commands do. All replicas of a group must have the same bounds of
// searches.
type effort struct {
	visits    int    // the entries that commands have visited, for tests
	indexFrom uint32 // the number of inside entries from which a lock has an index
	// the bounds of the searches for deadlocks in an Acquire
	walkVisits, permitVisits int
}

func newEffort() effort {
	return effort{indexFrom: indexFrom, walkVisits: walkVisits, permitVisits: permitVisits}
}

func (w *effort) visit(entries int) { w.visits += entries }

// BoundSearches sets the numbers of entries that a search in an Acquire visits, for tests and
// simulations. All replicas of a group must have the same bounds.
func (w *effort) BoundSearches(walk, permits int) { w.walkVisits, w.permitVisits = walk, permits }
