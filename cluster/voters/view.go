package voters

import (
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// View is all input of Reconcile in one value. No result depends on the order of a slice. Nothing
// is kept or changed.
type View struct {
	// Now is the leader's boot-time clock, from any fixed origin. It is compared only with
	// Prepared.Since.
	Now time.Duration
	// Self, Settings, Config and Pending are those of the Facts.
	Self     nodeid.ReplicaID
	Settings Settings
	Config   Config
	Pending  bool
	// Replicas has one entry for each replica of Config. A missing one counts as not heard from,
	// and never as dead.
	Replicas []Replica
	// Registered are the instances that have a session, and those with an ended session that are
	// still known.
	Registered []Registered
	// Others is that of the Facts. Only AllLeaving reads it.
	Others Others
	// Prepared is what this leader has asked for in this term. A new leader begins with none.
	Prepared []Prepared
	// Fresh is a raft ID that was never used, for the next Prepare. Zero means that nothing is
	// prepared.
	Fresh nodeid.ReplicaID
}

// Settings are the settings of the group that matter here.
type Settings struct {
	// Voters is how many replicas should vote. An even number counts as the odd one below, less
	// than 1 as 1.
	Voters int
	// Founders are the names of the instances that may vote. Empty means that all may.
	Founders []string
	// Durable is set if a voter returns with its data after a restart.
	Durable bool
}

// Config is a configuration of raft.
type Config struct {
	// At is the index of its entry: a later configuration has a higher one.
	At uint64
	// Voters are those of the (incoming) majority.
	Voters []nodeid.ReplicaID
	// Outgoing are the voters of the other majority while the configuration is joint. Otherwise
	// empty.
	Outgoing []nodeid.ReplicaID
	Learners []nodeid.ReplicaID
}

// Replica is what the leader knows about one raft ID of the configuration.
type Replica struct {
	ID nodeid.ReplicaID
	// Instance is the process that runs it, from the entry that added it. Zero if unknown.
	Instance nodeid.ID
	// CaughtUp is set while its log is close enough to the leader's that it can be promoted.
	CaughtUp bool
	// Full is set while it has everything in the leader's log, counting what is already on its way.
	Full bool
	// Settled is set once the leader knows that the replica knows that Config is committed. Having
	// the entry is not enough: the replica must have acknowledged an entry that this leader
	// proposed after applying Config, since that entry carried the commit index. Only MayStop and
	// promotions need it.
	Settled bool
	// Active is set while this leader has heard from it within an election timeout. What an earlier
	// leader heard does not count.
	Active bool
	// SilentFor is how long it was not heard from, at most since this leader leads. So each new
	// leader grants the full limit again.
	SilentFor time.Duration
	// Linked is set while the leader has a stream with Instance. Only the Reconciler reads it.
	Linked bool
	// Addr is the address at which Instance was last seen. Probes go there, and the caller may use
	// it.
	Addr string
	// LifeOver is set when its life is known to be over: it has reported its retirement, or there
	// is no stream with it, and its address refuses, another instance answers there, or its name
	// was registered again. With a directory it only makes the replica count as not heard from.
	LifeOver bool
}

// Registered is one instance. Several entries of one instance count as one, since an earlier
// session may not have expired yet.
type Registered struct {
	Instance nodeid.ID
	// Name is the instance's name, as in Founders.
	Name string
	// Zone is where it runs. Empty is a zone like any other.
	Zone string
	// Addr is where it is reached, for the caller only.
	Addr string
	// Order is higher for the instance that registered later under the same name.
	Order uint64
	// Leaving is set once the instance has announced that it leaves. It is never reset.
	Leaving bool
	// Reachable is set while the leader has a stream with it.
	Reachable bool
	// Session is set while a session registers it.
	Session bool
	// Lost is how often, in the last two minutes, a replica under this instance's name was dead by
	// rule 11, or out of reach for as long. Earlier lives count. Zero if losses are not counted:
	// then only the number of such losses bounds the number of changes.
	Lost int
}

// State is the state of a Prepare.
type State uint8

// The states of a Prepare.
const (
	Asked State = iota // the question is on its way
	// the instance runs a replica under that ID, with an empty log, that no configuration has named
	// yet
	Running
	Ended   // that ID was used before
	Refused // the instance refused
)

// Prepared is one Prepare of this term.
type Prepared struct {
	// ID is the offered raft ID.
	ID       nodeid.ReplicaID
	Instance nodeid.ID
	State    State
	// Since is when it entered this state, on the clock of View.Now.
	Since time.Duration
}
