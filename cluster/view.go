package cluster

import (
	"cmp"
	"slices"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/cluster/voters"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Phase is how far an instance has come in its present life.
type Phase = founding.Phase

// The phases, in order. There is no way back but a restart in place.
const (
	Newborn     = founding.Newborn // belongs to nothing
	Bound       = founding.Bound   // has accepted a charter that is not yet known to be born
	PhaseMember = founding.Member  // belongs to a group that is born
)

// Member is an instance that gossip sees: with Founders these are the founders, and on an instance
// that is none only itself. It is advice: somebody may be listed a while after he is gone, or
// missing though he lives.
type Member struct {
	Name     string
	Instance nodeid.ID
	Addr     string // host:port
	Zone     string
	Group    uint64 // 0: none
	Raft     uint64 // 0: no voter
	Leader   bool   // it knows a leader of its group
	Self     bool   // it is this instance
}

// Status is a picture of the cluster for people and programs. Its slices belong to the caller.
type Status struct {
	Phase    Phase
	Instance nodeid.ID // ID of this life
	Life     uint64    // number of this start; 1 in memory mode
	Waiting  string    // one sentence: what is awaited, and the way out; empty if nothing is
	Group    uint64    // 0: none
	Voters   []Voter   // of Group, by raft ID
	Namesake string    // one sentence: another instance has this one's name; empty if none is seen
	Members  []Member  // by name, then instance
}

// view is what others may read: made by the owner, never changed afterwards.
type view struct {
	Status
	byRaft   map[uint64]Voter
	standing *voters.Report // of the last look; nil: this instance does not lead
}

// publish makes the present state readable.
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

// tellMembers tells the host's configuration that gossip sees others than before. It compares only
// if somebody wants to know.
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

// members lists whom gossip sees, and this instance whether gossip sees it or not.
func (c *Cluster) members() []Member {
	o := &c.own
	self := o.core.Meta()
	is := c.member(self, true)
	if o.listed != nil && is == o.self && o.listedAt == o.core.At() {
		return o.listed // it is not changed once it was published
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

// member is what gossip says of an instance. Whether it votes is not gossip's to say.
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

// Members returns whom gossip sees, this instance among them, by name and instance. The slice
// belongs to the caller.
func (c *Cluster) Members() []Member { return slices.Clone(c.view.Load().Members) }

// Status returns the present picture.
func (c *Cluster) Status() Status {
	s := c.view.Load().Status
	s.Voters, s.Members = slices.Clone(s.Voters), slices.Clone(s.Members)
	return s
}

// idText writes an ID as people read it in logs.
func idText(id uint64) string { return nodeid.Hex(id) }
