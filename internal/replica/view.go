package replica

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
)

// View is the part of a replica's state that the other parts of its instance can read. Any
// goroutine may read it. An instance without a replica has a nil View.
type View struct {
	Group, ID uint64

	role     atomic.Pointer[raftlog.Role]
	config   atomic.Pointer[raftlog.Configuration]
	settings atomic.Pointer[Settings]
	rules    atomic.Uint32
	revision atomic.Uint64
	remarks  atomic.Pointer[[]string]

	counting sync.Mutex // guards the fields below; held only for assignments
	counts   lockfsm.Counts
	used     lockfsm.Usage
}

// Book is the address book of an instance. It may be newer than the configuration in the log.
type Book interface {
	Voter(raft uint64) (founding.Voter, bool)
}

// Role returns the replica's present role and term.
func (v *View) Role() raftlog.Role { return *v.role.Load() }

// Configuration returns the configuration that this replica has applied. It is never nil and must
// not be changed.
func (v *View) Configuration() *raftlog.Configuration { return v.config.Load() }

// Settings returns the settings in force in the group, or nil if they are unknown.
func (v *View) Settings() *Settings { return v.settings.Load() }

// Rules returns the version of the lock rules in force in the group.
func (v *View) Rules() uint32 { return v.rules.Load() }

// Revision returns the revision of the state at the end of the last turn.
func (v *View) Revision() lockfsm.Revision { return lockfsm.Revision(v.revision.Load()) }

// Counts returns the size of the state at the end of the last turn.
func (v *View) Counts() lockfsm.Counts {
	v.counting.Lock()
	defer v.counting.Unlock()
	return v.counts
}

// Usage returns the used part of the budgets at the end of the last turn.
func (v *View) Usage() lockfsm.Usage {
	v.counting.Lock()
	defer v.counting.Unlock()
	return v.used
}

// Remarks returns sentences about differing settings, from the last pass as leader.
func (v *View) Remarks() []string {
	if v == nil || v.remarks.Load() == nil {
		return nil
	}
	return *v.remarks.Load()
}

func (v *View) note(machine *lockfsm.Machine) {
	counts, used := machine.Counts(), machine.Usage()
	v.counting.Lock()
	v.counts, v.used = counts, used
	v.counting.Unlock()
	v.revision.Store(uint64(machine.Revision()))
}

// Votes reports whether the replica is a voter of the applied configuration.
func (v *View) Votes() bool {
	c := v.Configuration()
	return slices.Contains(c.Voters, v.ID) || slices.Contains(c.Outgoing, v.ID)
}

// IsNamed reports whether the applied configuration contains the replica, as voter or learner.
func (v *View) IsNamed() bool {
	return slices.ContainsFunc(v.Configuration().Members, func(m raftlog.Member) bool { return m.ID == v.ID })
}

// Of returns the raft IDs that the configuration assigns to an instance. The instance may have
// stopped using some of them.
func (v *View) Of(instance nodeid.ID) (ids []uint64) {
	for _, m := range Placed(v.Configuration()) {
		if m.Instance == instance {
			ids = append(ids, m.Raft)
		}
	}
	return ids
}

// Others returns the replicas in the configuration, except those on the instance self.
func (v *View) Others(self nodeid.ID) []founding.Voter {
	return slices.DeleteFunc(Placed(v.Configuration()), func(m founding.Voter) bool { return m.Instance == self })
}

// OthersConnected reports whether the instance of any replica in Others is connected.
func (v *View) OthersConnected(self nodeid.ID, linked func(nodeid.ID) bool) bool {
	return slices.ContainsFunc(v.Others(self), func(m founding.Voter) bool { return linked(m.Instance) })
}

// Speaks reports whether the raft ID belongs to the instance. The address book decides this. If
// the ID is not in the book, the applied configuration decides. Raft trusts every message of a
// replica. Without this check, any member could stop the leader with a false raft ID.
func (v *View) Speaks(book Book, raft uint64, instance nodeid.ID) bool {
	if m, ok := book.Voter(raft); ok {
		return m.Instance == instance
	}
	return v != nil && Names(v.Configuration(), raft, instance)
}

// Place returns the instance of a raft ID from the address book or, for a new replica, from the
// configuration.
func (v *View) Place(book Book, raft uint64) founding.Voter {
	m, ok := book.Voter(raft)
	if ok || v == nil {
		return m
	}
	return Find(v.Configuration(), raft)
}

// Leader returns the replica that this replica believes to be the leader, or the zero Voter.
func (v *View) Leader(book Book) founding.Voter {
	if v == nil {
		return founding.Voter{}
	}
	return v.Place(book, v.Role().Leader)
}

// LeaderOr returns the endpoint of the Leader. If no leader is known, it returns the parameter
// attached, which is the leader to which this instance's session is attached.
func (v *View) LeaderOr(book Book, attached nodeid.Endpoint) nodeid.Endpoint {
	if m := v.Leader(book); !m.Instance.IsZero() {
		return target(m)
	}
	return attached
}

// KnowsLeader reports whether the instance has a leader, through its replica or its attached
// session.
func (v *View) KnowsLeader(attached bool) bool { return attached || v != nil && v.Role().Leader != 0 }

// Targets returns the endpoints of the given replicas.
func Targets(voters []founding.Voter) []nodeid.Endpoint {
	list := make([]nodeid.Endpoint, 0, len(voters))
	for _, v := range voters {
		list = append(list, target(v))
	}
	return list
}

func target(v founding.Voter) nodeid.Endpoint { return nodeid.Endpoint{ID: v.Instance, Addr: v.Addr} }
