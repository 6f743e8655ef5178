package cluster

import (
	"cmp"
	"slices"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Phase is the progress of the current incarnation towards membership in a group.
type Phase = founding.Phase

// The phases, in order. Only a restart in place goes back to an earlier phase.
const (
	Newborn     = founding.Newborn // belongs to no group
	Bound       = founding.Bound   // has accepted a charter, but does not know whether its group is founded
	PhaseMember = founding.Member  // belongs to a founded group
)

// Member is an instance that gossip reports. If Settings.Founders is set, the members are the
// founders, and an instance that is not a founder lists only itself. The list may contain an
// instance that has ended, or miss one that runs.
type Member struct {
	Name     string
	Instance nodeid.ID
	Addr     string // host:port
	Zone     string
	Group    uint64 // zero means none
	Raft     uint64 // zero means that the instance is no voter
	Leader   bool   // the instance knows a leader of its group
	Self     bool
}

// Status is a snapshot of the cluster. Its slices belong to the caller.
type Status struct {
	Phase    Phase
	Instance nodeid.ID
	Life     uint64  // number of this start; 1 in memory mode
	Waiting  string  // a sentence that says what this instance waits for and what to do
	Group    uint64  // zero means none
	Voters   []Voter // the replicas of Group, sorted by raft ID
	Namesake string  // a warning if another instance has the same Name; otherwise empty
	// Unresolved is a warning that names entries of Join without an address, with the step. It is
	// empty if there are none, and while Waiting names them.
	Unresolved string
	Members    []Member // sorted by name, then by instance
}

// Joined reports whether the instance belongs to a group that is founded.
func (s *Status) Joined() bool { return s.Phase == founding.Member }

// view contains the data that other goroutines may read. A published view is never changed.
type view struct {
	Status
	byRaft   map[uint64]Voter
	standing *voters.Report // the report of the last evaluation; nil if this instance does not lead
}

func (c *Cluster) publish() {
	core, now := c.own.core, c.now()
	birth := core.Founding
	v := &view{
		Status: Status{
			Phase: birth.Phase(), Instance: birth.Instance(), Life: birth.Life(), Waiting: c.waiting(),
			Group:  birth.Group(),
			Voters: core.Voters(), Members: c.members(),
		},
		byRaft: make(map[uint64]Voter), standing: core.Report(),
	}
	v.Namesake = c.namesake(now, v.Members)
	if v.Phase == PhaseMember && v.Waiting == "" {
		v.Unresolved = c.own.join.Unresolved(now)
	}
	for _, voter := range v.Voters {
		v.byRaft[voter.Raft] = voter
	}
	c.view.Store(v)
}

func (c *Cluster) members() []Member {
	o := &c.own
	self := o.core.Meta()
	is := c.member(self, true)
	if o.listed != nil && is == o.self && o.listedAt == o.core.At() {
		return o.listed // a published list is never changed
	}
	o.self, o.listedAt = is, o.core.At()
	out := []Member{o.self}
	for _, p := range o.core.Peers() {
		if p.Instance != self.Instance && p.Addr != self.Addr {
			out = append(out, c.member(p, false))
		}
	}
	slices.SortFunc(out, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), nodeid.Compare(a.Instance, b.Instance))
	})
	o.listed = out
	return out
}

// member converts an entry of gossip. The raft ID comes from the configuration, not from gossip.
func (c *Cluster) member(m gossip.Meta, self bool) Member {
	is := Member{Name: m.Name, Instance: m.Instance, Addr: m.Addr, Zone: m.Zone, Group: m.Group, Leader: m.Leader,
		Self: self}
	for _, v := range c.own.core.Voters() {
		if v.Instance == m.Instance {
			is.Raft = v.Raft
		}
	}
	if self {
		is.Raft = c.own.core.Raft()
	}
	return is
}

// Members returns the instances that gossip reports, including this one, sorted by name and
// instance. The slice belongs to the caller.
func (c *Cluster) Members() []Member { return slices.Clone(c.view.Load().Members) }

// Status returns the current status. Gossip can know thousands of instances, so Members is shared:
// the caller must not change it.
func (c *Cluster) Status() Status {
	s := c.view.Load().Status
	s.Voters = slices.Clone(s.Voters)
	return s
}

func idText(id uint64) string { return nodeid.Hex(id) }
