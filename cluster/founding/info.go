package founding

import "github.com/mortise-lock/mortise/internal/nodeid"

// Phase is the phase of one incarnation. The values are sent to other instances and never change.
type Phase uint8

// The phases of an incarnation, in order.
const (
	Newborn Phase = iota // belongs to no group
	Bound                // has accepted a charter whose group is not known to be founded
	Member               // belongs to a founded group
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

// InstanceInfo is the answer of an instance to "who are you?". An incarnation never leaves its
// charter, so the answers about its phase and group stay true.
type InstanceInfo struct {
	Instance   nodeid.ID // ID that the connection has proved; not in the message
	Name       string
	Addr       string // host:port at which other instances reach this one
	Phase      Phase
	Leader     bool
	RefusedYou bool   // the instance has refused the charter to which the asker is bound
	Group      uint64 // 0 for a newborn
	Settings   Settings
	Rules      uint32 // newest version of the lock rules that the instance supports
	WallUnixMS int64
	Voters     []Voter // voters of Group, if known
	Obstacle   string  // why a newborn can accept no charter; empty if it can
	Life       uint64  // number of starts with the directory; 1 in memory
	Boot       uint64  // random number of the process
	Durable    bool    // a directory holds the reported state
	Resuming   bool    // the instance has just restarted and does not take part yet
	AskerLife  uint64  // newest life of the asker that the instance knows; zero means none
	AskerBoot  uint64  // process of that life; zero means unknown
	AskerAddr  string

	// number of the configuration Voters; 1 for the configuration of the charter
	At uint64
	// groups that Group has replaced, or that a newborn has given up, in ascending order
	Supersedes  []uint64
	FloorUnixMS int64     // all tokens of the instance's next group must be above this value
	Standing    *Standing // state of the instance's replica; nil if the build does not report it
	Met         []string  // addresses at which the instance has met founders
}

// question is "who are you?". It identifies the asker, so that the asked instance can ask in
// return.
type question struct {
	// ID of the asker; Instance and Addr come from the connection, not from the message
	Instance nodeid.ID
	Addr     string
	Group    uint64 // the charter to which the asker is bound, or its group; zero means none
	Bound    bool   // the asker is bound to Group or a member of it
	Life     uint64 // life of the asker; zero means that the asker has no directory
	Boot     uint64 // random number of the asker's process
	Resuming bool   // the asker does not take part yet
	Founds   bool   // the asker is a founder by its own settings
}

// Asker is the instance that asks a question. The connection proves Instance; Addr is only a claim.
type Asker struct {
	Instance nodeid.ID
	Addr     string
}

type proposal struct {
	To      nodeid.ID // the only incarnation that may answer
	Charter Charter
}

type verdict struct {
	Instance nodeid.ID // the connection proves the ID
	Group    uint64
	Refusal  Refusal
	Detail   string
}
