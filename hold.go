package mortise

import "time"

// Hold is a hold of a lock, or a request that waits for one, as the group shows it.
type Hold struct {
	Holder  string            // Name of its instance, or the ID if it has given no name
	Session string            // ID of its session; each incarnation of an instance has its own
	Token   Token             // zero if the request waits
	Since   time.Time         // time of the grant, by the leader's wall clock, for display; zero if unknown
	Value   string            // its Request.Value, or what Lock.SetValue has made of it
	Labels  map[string]string // its Request.Labels
	// Kept means that Holder keeps the lock (Node.LockSticky), and that a caller on that instance may
	// or may not hold it.
	Kept bool
}
