package founding

import "github.com/mortise-lock/mortise/internal/nodeid"

// Phase is the progress of an instance in one life. The values are part of messages and never
// change.
type Phase uint8

// The phases of a life, in order. Only a new life returns to Newborn.
const (
	Newborn Phase = iota // belongs to no group
	Bound                // has accepted a charter that is not yet known to be born
	Member               // belongs to a group that is born
)

func (p Phase) String() string {
	switch p {
	case Newborn:
		return "newborn"
	case Bound:
		return "bound"
	case Member:
		return "member"
	}
	return "unknown"
}

// InstanceInfo is the answer of an instance about itself. Phase and Group also answer "are you
// bound to this charter?" and "is it born?". A life never leaves its charter, so such an answer
// stays true for the whole life.
type InstanceInfo struct {
	Instance   nodeid.ID // the ID that its connection proved; not in the message
	Name       string
	Addr       string // host:port at which others reach it
	Phase      Phase
	Leader     bool   // it knows a leader of Group
	RefusedYou bool   // it has refused the charter that the asker is bound to
	Group      uint64 // 0 for a newborn
	Settings   Settings
	Rules      uint32  // newest version of the lock rules that it knows
	WallUnixMS int64   // its wall clock
	Voters     []Voter // of Group, if it knows them
	Obstacle   string  // why a newborn cannot accept any charter; empty if it can
	Life       uint64  // counts its starts with one directory; 1 in memory
	Durable    bool    // the rest of this answer is stored in a directory
	Resuming   bool    // it has just restarted and does not take part yet
	AskerLife  uint64  // the newest life of the asker that it knows. Zero means none
	AskerAddr  string  // the address of that life

	// the number of the configuration Voters; a higher number is newer, the founding one is 1
	At          uint64
	Supersedes  []uint64  // groups that Group has replaced, or that a newborn has given up; ascending
	FloorUnixMS int64     // tokens of the next group must start above this time
	Standing    *Standing // of its replica; nil if its build does not report one
	Met         []string  // addresses at which it has met founders itself; only a hint where to ask
}

// question asks "who are you?". It describes the asker, so that the asked instance can ask it in
// turn.
type question struct {
	Instance nodeid.ID // of the asker; like Addr it comes from the connection, not from the message
	Addr     string
	Group    uint64 // the charter that the asker is bound to, or its group. Zero means none
	Bound    bool   // the asker is bound to Group or a member of it
	Life     uint64 // of the asker. Zero means that it has no directory
	Resuming bool   // the asker does not take part yet
	Founds   bool   // the asker is a founder by its settings, so it is asked back
}

type proposal struct {
	To      nodeid.ID // the only life that may answer
	Charter Charter
}

type verdict struct {
	Instance nodeid.ID // the instance that answers, by its connection
	Group    uint64    // of the charter that was asked about
	Refusal  Refusal
	Detail   string // for people
}
