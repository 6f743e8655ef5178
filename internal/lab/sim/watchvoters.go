package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/timeline"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/raftlog"
)

// voterWatch observes groups, their configurations, and the incarnations that belong to them.
type voterWatch struct {
	*sight
	members   check.Members
	foundings check.Groups
	leaders   int // replicas that lead now, in any group
	// if leaders is 0: when the last leader stopped leading, or zero if no voter has led yet
	leaderless time.Duration
	gaveUp     map[uint64]bool
	bound      map[nodeid.ID]uint64 // the group to whose charter each incarnation was bound
	changed    func(*machine)       // called when the first replica applies a configuration; may be nil
}

const charterAt = 1

func (o *voterWatch) begins(r *voter, empty bool) {
	o.w.must(o.members.Begins(r.Group, r.ID, nodeidtest.Number(r.p.instance), empty))
}

func (o *voterWatch) stopped(r *voter) { o.counts(r, false) }

func (o *voterWatch) counts(r *voter, leads bool) {
	if leads == r.counted {
		return
	}
	r.counted = leads
	if text := fmt.Sprintf("leads group %x", r.Group); leads {
		o.w.line.Begin(timeline.Leads, o.w.page(), r.p.m.name, text)
	} else {
		o.w.line.End(timeline.Leads, o.w.page(), r.p.m.name, text)
	}
	switch {
	case leads:
		if o.leaders == 0 && o.leaderless > 0 {
			o.w.stats.Leaderless = max(o.w.stats.Leaderless, o.w.now-o.leaderless)
		}
		o.leaders++
	default:
		if o.leaders--; o.leaders == 0 {
			o.leaderless = o.w.now
		}
	}
}

func (o *voterWatch) carries(r *voter, step voters.Step) {
	if slices.Contains(step.Remove, r.ID) || slices.Contains(step.Demote, r.ID) {
		o.w.broken("%v leads and would take its own vote: %s", r.p, step.Why)
	}
}

func (o *voterWatch) configured(r *voter, c *raftlog.Configuration) {
	places := replica.Placed(c)
	members := make([]check.Member, 0, len(places))
	for _, v := range places {
		members = append(members, check.Member{ID: v.Raft, Instance: nodeidtest.Number(v.Instance)})
	}
	fresh, err := o.members.Configured(r.Group, c.Index, members, c.Voters)
	o.w.must(err)
	o.foundings.Configured(r.Group, c.Index, numbers(instances(places, c.Voters)), numbers(instances(places, c.Outgoing)))
	if !fresh {
		return
	}
	if g := o.groups[r.Group]; g.newest == nil || g.newest.Index < c.Index {
		g.newest = c
	}
	if n := len(c.Voters); n%2 == 0 && n > 2 {
		o.w.broken("group %x has %d voters at index %d", r.Group, n, c.Index)
	}
	o.founders(r, places, c.Voters)
	if c.Index == charterAt {
		return
	}
	o.w.stats.Changes++
	if o.changed != nil {
		o.changed(r.p.m)
	}
	come := func(id uint64) bool { return !slices.Contains(c.Outgoing, id) }
	gone := func(id uint64) bool { return !slices.Contains(c.Voters, id) }
	if slices.ContainsFunc(c.Voters, come) && slices.ContainsFunc(c.Outgoing, gone) {
		o.w.stats.Replaced++
	}
	o.w.note("group %x at %d: voters %x, outgoing %x, learners %x", r.Group, c.Index, c.Voters, c.Outgoing, c.Learners)
}

// parts checks the leader's answer to an instance that is leaving. If the instance may stop
// while others remain, its replica must not vote in the newest configuration that any replica
// has applied.
func (o *voterWatch) parts(p *life, raft uint64, said *cluster.VoterStatus) {
	if said == nil || said.AllLeaving || !said.MayStop {
		return
	}
	o.w.stats.Leaves++
	g := o.groups[p.group]
	if g == nil || g.newest == nil {
		return
	}
	newest := g.newest
	if slices.Contains(newest.Voters, raft) || slices.Contains(newest.Outgoing, raft) {
		o.w.broken("%v may stop its replica %x, which votes: %s", p, raft, configText(newest))
	}
}

// founders checks that only founders vote if the setting Founders is used.
func (o *voterWatch) founders(r *voter, places []founding.Voter, voters []uint64) {
	for _, instance := range instances(places, voters) {
		if name := o.w.names[instance]; len(o.w.cfg.Founders) > 0 && !slices.Contains(o.w.cfg.Founders, name) {
			o.w.broken("group %x has %q among its voters; the founders are %q", r.Group, name, o.w.cfg.Founders)
		}
	}
}

func numbers(instances []nodeid.ID) []uint64 {
	list := make([]uint64, 0, len(instances))
	for _, instance := range instances {
		list = append(list, nodeidtest.Number(instance))
	}
	return list
}

func instances(places []founding.Voter, ids []uint64) []nodeid.ID {
	var list []nodeid.ID
	for _, v := range places {
		if slices.Contains(ids, v.Raft) {
			list = append(list, v.Instance)
		}
	}
	return list
}

func configText(c *raftlog.Configuration) string {
	return fmt.Sprintf("voters %x, outgoing %x, learners %x at %d", c.Voters, c.Outgoing, c.Learners, c.Index)
}

// binds checks that an incarnation is never bound to two groups.
func (o *voterWatch) binds(p *life) {
	if p.core.Founding.Phase() != founding.Bound {
		return
	}
	instance, group := p.core.Founding.Instance(), p.core.Founding.Group()
	if was := o.bound[instance]; was != 0 && was != group {
		o.w.broken("%v is bound to group %x, and was bound to group %x in the same life", p, group, was)
	}
	o.bound[instance] = group
}

// leaves checks a restart in place. An instance with a disk may leave its group only if operators
// have given up the group. A voter without a disk may leave only a group that can no longer elect
// a leader. In a run with an insider, the second rule is not checked.
func (o *voterWatch) leaves(p *life) {
	switch {
	case !p.member || o.gaveUp[p.group]:
	case p.m.disk != nil:
		o.w.broken("%v leaves group %x, which its disk has and people have not given up", p, p.group)
	case p.voter != nil && !o.w.cfg.Insider && o.lives(p.voter):
		o.w.broken("%v leaves group %x, in which it votes and a majority of the replicas runs", p, p.group)
	}
}

// lives reports whether a running replica could win an election in its own configuration. It
// considers only configurations in which the given voter votes. A replica votes for a candidate if
// the last entry of the candidate's log is not older than its own last entry, and if the replica
// knows the candidate.
func (o *voterWatch) lives(of *voter) bool {
	run := slices.DeleteFunc(slices.Collect(o.replicas()), func(r *voter) bool { return r.Group != of.Group })
	return slices.ContainsFunc(run, func(candidate *voter) bool {
		majority := func(voters []uint64) bool {
			n := 0
			for _, r := range run {
				if slices.Contains(voters, r.ID) && !behind(candidate, r) &&
					r.Speaks(r.p.core, candidate.ID, candidate.p.instance) {
					n++
				}
			}
			return 2*n > len(voters)
		}
		c := candidate.Configuration()
		return candidate.Votes() && (slices.Contains(c.Voters, of.ID) || slices.Contains(c.Outgoing, of.ID)) &&
			majority(c.Voters) && (len(c.Outgoing) == 0 || majority(c.Outgoing))
	})
}

// behind reports whether raft refuses to vote: the last entry of the candidate is older than r's.
func behind(candidate, r *voter) bool {
	term, index, err := r.core.LastEntry()
	r.p.w.must(err)
	of, at, err := candidate.core.LastEntry()
	r.p.w.must(err)
	return of < term || of == term && at < index
}

func (o *voterWatch) founded(c *founding.Charter) {
	if o.groups[c.Group] == nil {
		o.groups[c.Group] = &group{charter: *c, delays: check.Delays{Drift: o.w.cfg.Drift + 1e-6}}
	}
}

// born checks a group when the first replica has applied the command Born.
func (o *voterWatch) born(r *voter) {
	g := o.groups[r.Group]
	if g.born {
		return
	}
	g.born = true
	o.w.stats.Groups++
	for _, l := range g.charter.List {
		if o.bound[l.Instance] != r.Group {
			o.w.broken("group %x is born, and %s, which is on its list, was never bound to it", r.Group, l.Name)
		}
	}
	o.w.note("group %x is born", r.Group)
	var voters []uint64
	for _, v := range g.charter.Voters {
		voters = append(voters, nodeidtest.Number(v.Instance))
	}
	o.w.must(o.foundings.Born(r.Group, g.charter.FoundedUnixMS, voters...))
	if o.w.cfg.Quiet && o.foundings.Needless() > 0 {
		o.w.broken("group %x is born, and a group before it had a majority all the time", r.Group)
	}
}
