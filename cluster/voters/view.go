package voters

import (
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// ID is a raft ID. It has one stay in the configuration and one life of its data, and is never used
// again.
type ID = uint64

// Instance is one life of a process, as gossip and registrations name it. 0 is nobody.
type Instance = nodeid.ID

// View is everything that the leader goes by, in one value. No result depends on the order of a
// slice, and nothing is kept or changed.
type View struct {
	// Now is the leader's boot-time clock, from any fixed origin. Only Prepared.Since is compared
	// with it.
	Now time.Duration
	// Self is the raft ID of the replica that looks. It leads, and its first own entry is applied.
	Self ID
	// Settings are the group's, from the charter or a later command, never the instance's own.
	Settings Settings
	// Config is the configuration that is committed and applied here.
	Config Config
	// Pending is set while a change of configuration is in the log and not applied, and while the
	// lead is being handed over.
	Pending bool
	// Replicas are those of Config, one each. One that is missing counts as not heard of, and never
	// as dead.
	Replicas []Replica
	// Registered are the instances that have a session, and those whose session has ended as far as
	// they are still known.
	Registered []Registered
	// Others is that of the Facts. Only AllLeaving looks at it.
	Others Others
	// Prepared is what this leader has asked for in this term. A new leader begins with none.
	Prepared []Prepared
	// Fresh is a raft ID that was never used, for the next Prepare. 0: there is none, and nothing
	// is prepared.
	Fresh ID
}

// Settings are those of the group that matter here.
type Settings struct {
	// Voters is how many should vote. An even number counts as the odd one below, less than 1 as 1.
	Voters int
	// Founders are the names of those who alone may vote. Empty: everybody may.
	Founders []string
	// Durable is set where a voter comes back with its data after a restart.
	Durable bool
}

// Config is a configuration of raft.
type Config struct {
	// Voters are those of the (incoming) majority.
	Voters []ID
	// Outgoing are the voters of the other majority while the configuration is joint, else none.
	Outgoing []ID
	// Learners get the log and have no vote.
	Learners []ID
}

// Replica is what the leader knows of one raft ID of the configuration.
type Replica struct {
	// ID names it.
	ID ID
	// Instance is the process that it belongs to, from the entry that added it, 0: not known.
	Instance Instance
	// CaughtUp is set while it lacks so little that it can be promoted.
	CaughtUp bool
	// Full is set while it has all that the leader's log has, or will have with what is already on
	// its way to it.
	Full bool
	// Settled is set once it is known to know that Config is committed. Having the entry is not
	// enough. It is so when it has acknowledged any entry that this leader proposed after applying
	// Config, since that entry came with the commit index. Only MayStop asks for it.
	Settled bool
	// Active is set while this leader has heard of it within an election timeout; what an earlier
	// leader heard does not count.
	Active bool
	// SilentFor is how long nothing was heard of it, at most since this leader leads, so that each
	// new leader gives the whole time anew.
	SilentFor time.Duration
	// Linked is set while the leader has a stream with Instance. Only the Steward looks at it.
	Linked bool
	// Addr is where Instance was last seen, for the caller and for Probe.
	Addr string
	// LifeOver is set when the life of its data is known to be over: there is no stream with it,
	// and its address refuses or answers as another instance, or its name has registered anew; or
	// it said itself that it has retired. Only memory mode believes it.
	LifeOver bool
}

// Registered is one instance. Several entries of one instance count as one: an earlier session of
// it may not have expired yet.
type Registered struct {
	// Instance names it.
	Instance Instance
	// Name is the instance's name, which Founders is compared with.
	Name string
	// Zone is where it runs. Empty is a zone like any other.
	Zone string
	// Addr is where it is reached, for the caller only.
	Addr string
	// Order says which of two instances with one name registered later: the higher.
	Order uint64
	// Leaving is set once the instance has said that it leaves. There is no way back from it.
	Leaving bool
	// Reachable is set while the leader has a stream with it.
	Reachable bool
	// Session is set while a session registers it.
	Session bool
	// Lost is how often, in the last two minutes, a replica of this instance or of an earlier life
	// under its name was dead by rule 11, or out of reach for as long. 0 where nobody counts: then
	// the number of changes is bounded by the number of such losses, and by nothing else.
	Lost int
}

// State is what became of a Prepare.
type State uint8

// The states of a Prepare. An ID that has been removed from the configuration is Ended, whatever
// its instance last said.
const (
	Asked State = iota // the question is on its way
	// the instance runs a replica under that ID, with an empty log, and no configuration has named
	// it yet
	Running
	Ended   // that ID was used before
	Refused // the instance said no
)

// Prepared is one Prepare of this term.
type Prepared struct {
	// ID is the raft ID that was offered.
	ID ID
	// Instance is who was asked.
	Instance Instance
	// State is what came of it.
	State State
	// Since is when it came into this state, on the clock of View.Now.
	Since time.Duration
}
