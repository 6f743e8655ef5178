package voters

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
	"iter"
	"slices"
)

// Facts are the input of a Reconciler: a leader's observations at one time. The Reconciler does
// not change them. It keeps the slices, so the caller must not change them afterwards. Only
// Others may change.
type Facts struct {
	// Self is the raft ID of this replica, which leads and has applied an entry of its own term.
	Self nodeid.ReplicaID
	// Settings are the settings of the group, not those of the instance.
	Settings Settings
	// Config is the configuration that is committed and applied here.
	Config Config
	// Pending is set while a change of configuration is in the log and not applied, and while
	// leadership is being transferred.
	Pending bool
	// Last is the last entry of the leader's log. Only the reasons of steps contain it.
	Last uint64
	// Replicas has one entry for each replica of Config. The caller does not set their field
	// LifeOver.
	Replicas []Replica
	// Registered contains each instance that has a session and meets one of three conditions:
	// Settings.Founders permits its vote, it has a replica, or it has the name of an instance
	// with a replica. The caller does not set their field Lost.
	Registered []Registered
	// Others are the instances with a session that are not in Registered. Nil means none. Others
	// must be used only on the goroutine that calls Look, because the content changes.
	Others Others
	// Remarks are texts for people and have no effect.
	Remarks []string
}

// Others are instances that have a session and cannot get a vote. There may be thousands, so Look
// does not read them.
type Others interface {
	// All iterates over these instances in any order, in time proportional to the number of
	// registered instances.
	All() iter.Seq[Registered]
	// Has reports whether an instance is in Others or Registered.
	Has(nodeid.ID) bool
}

// All iterates over all instances that have a session now, in time proportional to their number.
func (f *Facts) All() iter.Seq[Registered] {
	return func(yield func(Registered) bool) {
		for _, r := range f.Registered {
			if !yield(r) {
				return
			}
		}
		if f.Others != nil {
			f.Others.All()(yield)
		}
	}
}

// Knows reports whether an instance has a session.
func (f *Facts) Knows(instance nodeid.ID) bool {
	is := func(r Registered) bool { return r.Session && r.Instance == instance }
	return slices.ContainsFunc(f.Registered, is) || f.Others != nil && f.Others.Has(instance)
}

// Probe asks whether the incarnation of a replica with which the leader has no stream still runs.
type Probe struct {
	ID       nodeid.ReplicaID
	Instance nodeid.ID
	Addr     string
}

// Same reports whether f and o are equal in everything that can make a step fail. It ignores how
// long replicas were silent and how long their logs are.
func (f *Facts) Same(o *Facts) bool {
	heard := func(x, y Replica) bool { return x.ID == y.ID && x.Active == y.Active && x.Linked == y.Linked }
	return f.Self == o.Self && f.Pending == o.Pending && slices.Equal(f.Config.Voters, o.Config.Voters) &&
		slices.Equal(f.Config.Outgoing, o.Config.Outgoing) && slices.Equal(f.Config.Learners, o.Config.Learners) &&
		slices.EqualFunc(f.Replicas, o.Replicas, heard) && slices.Equal(f.Registered, o.Registered)
}

// Where returns the address of the latest registration of an instance, or "".
func (f *Facts) Where(instance nodeid.ID) string {
	addr, order := "", uint64(0)
	for _, r := range f.Registered {
		if r.Instance == instance && r.Addr != "" && (addr == "" || r.Order > order) {
			addr, order = r.Addr, r.Order
		}
	}
	return addr
}
