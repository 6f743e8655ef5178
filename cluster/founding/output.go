package founding

import (
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Random is what a Tick may need of chance. The core has no source of its own; every word is fresh
// and random, and none is zero.
type Random struct {
	Instance nodeid.ID // of a new life
	Group    uint64    // of a new charter
	Raft     [7]uint64 // raft IDs of a new charter
	Spread   uint64    // for times that should not coincide; need not be a secret
}

// Output is what a Tick wants done, once State is stored. Questions may be asked in any order and
// side by side; events must be carried out in order.
type Output struct {
	Questions []Question
	Events    []Event
	Next      time.Duration // when to call Tick again at the latest; an absolute time on the scale of now
}

// Question is to be put to whoever is at Addr, or, if To is not zero, to that instance only. Its
// outcome goes to Result.
type Question struct {
	ID   uint64
	Addr string
	To   nodeid.ID
	Body []byte
}

// EventKind says what an event means.
type EventKind uint8

// The events, with the fields of Event that each fills in.
const (
	BoundTo  EventKind = iota + 1 // bound to Charter, with the raft ID Raft (0: no vote): start raft
	AllBound                      // everybody on the list of Group is bound: its leader may propose Born
	// member of Group with Voters, its configuration At, by birth or later; Text: a warning, or
	// empty
	Joined
	Restarted // a new life Instance began; Text says why the old one had to end
	Heard     // Group's configuration At is Voters; at zero, only where some of its voters are
	Barred    // this instance may never take part again: Text says why, and what to do
	// start an empty replica of Group under the ID Raft, or, after a start with a directory, go on
	// with its log
	Prepared
	Removed // the replica Raft of Group is over: stop it for good, and go on without
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
