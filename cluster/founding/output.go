package founding

import (
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Random is the randomness that a Tick may need. Each number is new, random and not zero.
type Random struct {
	Instance nodeid.ID // of a new life
	Group    uint64    // of a new charter
	Raft     [7]uint64 // raft IDs of a new charter
	Spread   uint64    // spreads the timers of different instances; need not be secret
}

// Output is what a Tick asks the host to do once State is stored. Questions may be asked
// concurrently and in any order; events must be carried out in order.
type Output struct {
	Questions []Question
	Events    []Event
	Next      time.Duration // the latest time for the next Tick, on the scale of now
}

// Question is to be asked of the instance at Addr. If To is not zero, only that instance may
// answer. The caller passes the outcome to Result.
type Question struct {
	ID   uint64
	Addr string
	To   nodeid.ID
	Body []byte
}

// EventKind is the meaning of an event.
type EventKind uint8

// The events, with the fields of Event that each sets.
const (
	BoundTo  EventKind = iota + 1 // bound to Charter, with the raft ID Raft (0: no vote): start raft
	AllBound                      // all listed instances are bound: Group's leader may propose Born
	// member of Group with Voters, its configuration At; Text is a warning, or empty
	Joined
	Restarted // a new life Instance began; Text is why the old one ended
	Heard     // Voters is configuration At of Group; if At is zero, it has only new addresses of some voters
	Barred    // this instance may never take part again; Text is why, and what to do
	// start an empty replica of Group under the ID Raft; after a start with a directory, resume its
	// log
	Prepared
	Removed // the replica Raft of Group was removed: stop it for good
)

// Event is a decision.
type Event struct {
	Kind     EventKind
	Charter  Charter
	Raft     uint64
	Group    uint64
	At       uint64
	Instance nodeid.ID
	Voters   []Voter
	Text     string
}
