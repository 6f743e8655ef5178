package voters

import (
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// View is the complete input of Reconcile. No result depends on the order of a slice. Reconcile
// neither keeps nor changes the View.
type View struct {
	// Now is the time on the leader's boot-time clock, from any fixed origin. It is compared only
	// with Prepared.Since.
	Now time.Duration
	// Self, Settings, Config, Pending and Last are copies of the fields of Facts.
	Self     nodeid.ReplicaID
	Settings Settings
	Config   Config
	Pending  bool
	Last     uint64
	// Replicas has one entry for each replica of Config. A missing replica counts as out of
	// contact, never as dead.
	Replicas []Replica
	// Registered are the instances that have a session, and known instances whose session has
	// ended.
	Registered []Registered
	// Others is a copy of Facts.Others. Only AllLeaving reads it.
	Others Others
	// Prepared lists the Prepares of this leader in this term. A new leader begins with none.
	Prepared []Prepared
	// Fresh is a raft ID that was never used, for the next Prepare. If Fresh is zero, no Prepare is
	// returned.
	Fresh nodeid.ReplicaID
}

// Settings are the settings of the group that this package needs.
type Settings struct {
	// Voters is the number of replicas that should vote. An even number counts as the next lower
	// odd number. A number below 1 counts as 1.
	Voters int
	// Founders are the names of the instances that may vote. Empty means all instances.
	Founders []string
	// Replicas is the number of instances that should run. Zero means any number.
	Replicas int
	// Rules is the version of the lock rules in force.
	Rules uint32
	// Durable is set if a voter returns with its data after a restart.
	Durable bool
}

// Config is a configuration of raft.
type Config struct {
	// At is the index of the entry of this configuration.
	At uint64
	// Voters are the replicas that vote. In a joint configuration they are those of the incoming
	// majority.
	Voters []nodeid.ReplicaID
	// Outgoing are the voters of the outgoing majority. It is empty unless the configuration is
	// joint.
	Outgoing []nodeid.ReplicaID
	Learners []nodeid.ReplicaID
}

// Replica contains the leader's facts about one replica of the configuration.
type Replica struct {
	ID nodeid.ReplicaID
	// Instance is the instance that runs the replica, according to the log entry that added it.
	// Zero means unknown.
	Instance nodeid.ID
	// CaughtUp is set while the replica's log is close enough to the leader's for a promotion.
	CaughtUp bool
	// Match is the last entry that the replica has acknowledged. Snapshot is the size in bytes of
	// the snapshot that it is to receive before further entries; zero means none. Only the reasons
	// of steps contain them.
	Match    uint64
	Snapshot int
	// Full is set while the replica has the leader's whole log, including entries in flight.
	Full bool
	// Settled is set once this leader has proof that the replica knows that Config is committed.
	// The proof is the acknowledgement of an entry that this leader proposed after applying Config,
	// since that entry carried the commit index.
	Settled bool
	// Active is set while the replica is in contact: this leader has received a message from it
	// within an election timeout.
	Active bool
	// SilentFor is the time since the last message from the replica, or since this leader began to
	// lead if that is shorter. Each new leader therefore grants the full limit.
	SilentFor time.Duration
	// Heard is set once this leader has received a message from the replica. Until then the silence
	// may be longer than SilentFor.
	Heard bool
	// Linked is set while the leader has a stream with Instance. Only the Reconciler reads it.
	Linked bool
	// Addr is the last known address of Instance.
	Addr string
	// LifeOver is set if the incarnation is known to have ended. This is the case in three
	// situations. It has reported its retirement. Or it was silent for a second, and its name was
	// registered again. Or the leader has no stream with it, and a probe has shown that its
	// address refuses connections or belongs to another instance. If Settings.Durable is set,
	// LifeOver makes the replica count as out of contact, but not as dead.
	LifeOver bool
	// Renewed is set only if Settings.Durable is set. The leader has no stream with Instance, and
	// another instance with its name has a session and has proved its own key at Addr. So the
	// directory of Instance is not used there any more. A replica that is out of contact then
	// counts as dead. Only one replica at a time has Renewed set.
	Renewed bool
}

// Registered is one instance. Several entries of one instance are merged, since an earlier session
// may not have expired yet.
type Registered struct {
	Instance nodeid.ID
	// Name is compared with Settings.Founders.
	Name string
	// Zone may be empty. The empty zone is a zone like any other.
	Zone string
	// Addr is used only by the caller.
	Addr string
	// Rules is the newest version of the lock rules that the instance knows. Zero means unknown.
	Rules uint32
	// Build is higher for a newer build with the same Rules, see replica.Record. Zero means unknown,
	// which counts as the oldest. It decides only to which voter a leader that leaves hands over.
	Build int64
	// Order is higher for an instance that registered later with the same name.
	Order uint64
	// Leaving is set once the instance has announced that it leaves. It is never reset.
	Leaving bool
	// Reachable is set while the leader has a stream with the instance.
	Reachable bool
	Session   bool
	// Lost counts the losses in the last two minutes under this instance's name, so losses of
	// earlier incarnations count. A replica is lost if it is dead by rule 11, or if it returns
	// after a silence as long as that rule's limit. Zero also means that losses are not counted.
	Lost int
}

// State is the state of a Prepare.
type State uint8

// The states of a Prepare.
const (
	Asked State = iota // sent and not answered
	// the instance runs an empty replica with that ID, which no configuration has contained
	Running
	Ended   // that ID was used before
	Refused // the instance refused
)

// Prepared is one Prepare of this term.
type Prepared struct {
	ID       nodeid.ReplicaID
	Instance nodeid.ID
	State    State
	// Since is the time of the last change of State, on the clock of View.Now. Sent is the time of
	// the last question.
	Since, Sent time.Duration
}
