package founding

import (
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Random holds the random numbers that a Tick may need. All are new and not zero.
type Random struct {
	Instance nodeid.ID
	Group    uint64
	Raft     [7]uint64
	Spread   uint64 // spreads timers; need not be secret
}

// Output is what the host has to do after a Tick, once State is stored. The host may ask the
// questions concurrently and in any order, but must carry out the events in order.
type Output struct {
	Questions []Question
	Events    []Event
	Next      time.Duration // latest time for the next Tick, on the scale of now
}

// Question is a question for the instance at Addr. If To is not zero, only the instance with that
// ID may answer. The host passes the outcome to Result.
type Question struct {
	ID   uint64
	Addr string
	To   nodeid.ID
	Body []byte
}

// EventKind is the kind of an event.
type EventKind uint8

// The kinds of events. Each comment names the fields of Event that are set.
const (
	// this instance is bound to Charter: start raft under the ID Raft, unless Raft is 0
	BoundTo  EventKind = iota + 1
	AllBound           // all listed instances are bound: Group's leader may propose Born
	// this instance is a member of Group; Voters is the configuration with the number At; Text is a
	// warning or empty
	Joined
	Restarted // a new incarnation, Instance, has begun; Text is the reason
	// Voters is the configuration of Group with the number At; if the number is zero, Voters
	// contains only newer addresses of some voters
	Heard
	Barred // this instance may never take part again; Text gives the reason and what to do
	// start an empty replica of Group under the ID Raft; after a restart from a directory, resume
	// the stored log of that replica instead
	Prepared
	Removed // the replica with the ID Raft has ended: stop it for good and run without one
)

// Event is a decision that the host must carry out.
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
