package cluster

import (
	"cmp"
	"slices"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Phase is the progress of an instance in its present life.
type Phase = founding.Phase

// The phases, in order. Only a restart in place leads back.
const (
	Newborn     = founding.Newborn // belongs to no group
	Bound       = founding.Bound   // has accepted a charter that is not yet known to be born
	PhaseMember = founding.Member  // belongs to a group that is born
)

// Member is an instance that gossip sees. With Founders these are the founders; an instance that is
// no founder sees only itself. The list is not reliable: an instance may be listed for some time
// after it has ended, or be missing although it runs.
type Member struct {
	Name     string
	Instance nodeid.ID
	Addr     string // host:port
	Zone     string
	Group    uint64 // zero means none
	Raft     uint64 // zero means that it is no voter
	Leader   bool   // it knows a leader of its group
	Self     bool   // it is this instance
}

// Status is a snapshot of the cluster. Its slices belong to the caller.
type Status struct {
	Phase    Phase
	Instance nodeid.ID
	Life     uint64   // number of this start; 1 in memory mode
	Waiting  string   // one sentence: what this instance waits for and what to do; may be empty
	Group    uint64   // zero means none
	Voters   []Voter  // of Group, by raft ID
	Namesake string   // one sentence: another instance has this one's name; may be empty
	Members  []Member // by name, then instance
}

// view is the state that other goroutines may read. The owner makes a new view for each change and
// never modifies one.
type view struct {
	Status
	byRaft   map[uint64]Voter
	standing *voters.Report // of the last check of the voters; nil if this instance does not lead
}

func (c *Cluster) publish() {
	core := c.own.core
	birth := core.Founding
	v := &view{
		Status: Status{
			Phase: birth.Phase(), Instance: birth.Instance(), Life: birth.Life(), Waiting: c.waiting(),
			Group:  birth.Group(),
			Voters: core.Voters(), Members: c.members(),
		},
		byRaft: make(map[uint64]Voter), standing: core.Report(),
	}
	v.Namesake = c.namesake(v.Members)
	for _, voter := range v.Voters {
		v.byRaft[voter.Raft] = voter
	}
	c.tellMembers(c.view.Swap(v), v.Members)
}

// tellMembers reports a change of the members that gossip sees to Config.Changed.
func (c *Cluster) tellMembers(before *view, after []Member) {
	if c.cfg.Changed == nil {
		return
	}
	var had []Member
	if before != nil {
		had = before.Members
	}
	if !slices.Equal(had, after) {
		c.cfg.Changed(had, after)
	}
}

// members lists the instances that gossip sees, and this instance in any case.
func (c *Cluster) members() []Member {
	o := &c.own
	self := o.core.Meta()
	is := c.member(self, true)
	if o.listed != nil && is == o.self && o.listedAt == o.core.At() {
		return o.listed // it was published, so it must not be changed
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

// member returns what gossip reports about an instance, except whether it votes, which is taken
// from the configuration.
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

// Members returns the instances that gossip sees, including this one, by name and instance. The
// slice belongs to the caller.
func (c *Cluster) Members() []Member { return slices.Clone(c.view.Load().Members) }

// Status returns the present status.
func (c *Cluster) Status() Status {
	s := c.view.Load().Status
	s.Voters, s.Members = slices.Clone(s.Voters), slices.Clone(s.Members)
	return s
}

func idText(id uint64) string { return nodeid.Hex(id) }
