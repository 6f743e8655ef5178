package sim

import (
	"fmt"
	"slices"

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

const charterAt = 1

func (o *watch) begins(r *ownReplica, empty bool) {
	o.w.must(o.members.Begins(r.Group, r.ID, nodeidtest.Number(r.p.instance), empty))
}

func (o *watch) stopped(r *ownReplica) { o.counts(r, false) }

func (o *watch) counts(r *ownReplica, leads bool) {
	if leads == r.counted {
		return
	}
	r.counted = leads
	if text := fmt.Sprintf("leads group %x", r.Group); leads {
		o.w.line.begin(timeline.Leads, o.w.page(), r.p.m.name, text)
	} else {
		o.w.line.end(o.w.page(), r.p.m.name, text)
	}
	switch {
	case leads:
		if o.leaders == 0 && o.leaderless > 0 {
			o.stats.Leaderless = max(o.stats.Leaderless, o.w.now-o.leaderless)
		}
		o.leaders++
	default:
		if o.leaders--; o.leaders == 0 {
			o.leaderless = o.w.now
		}
	}
}

func (o *watch) carries(r *ownReplica, step voters.Step) {
	if slices.Contains(step.Remove, r.ID) || slices.Contains(step.Demote, r.ID) {
		o.w.broken("%v leads and would take its own vote: %s", r.p, step.Why)
	}
}

func (o *watch) configured(r *ownReplica, c *raftlog.Configuration) {
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
	o.stats.Changes++
	o.w.nemesis.pounce(r.p.m)
	come := func(id uint64) bool { return !slices.Contains(c.Outgoing, id) }
	gone := func(id uint64) bool { return !slices.Contains(c.Voters, id) }
	if slices.ContainsFunc(c.Voters, come) && slices.ContainsFunc(c.Outgoing, gone) {
		o.stats.Replaced++
	}
	o.w.note("group %x at %d: voters %x, outgoing %x, learners %x", r.Group, c.Index, c.Voters, c.Outgoing, c.Learners)
}

// parts checks the leader's answer to an instance that is leaving. If the instance may stop
// while others remain, its replica must not vote in the newest configuration that any replica
// has applied.
func (o *watch) parts(p *proc, raft uint64, said *cluster.VoterStatus) {
	if said == nil || said.AllLeaving || !said.MayStop {
		return
	}
	o.stats.Leaves++
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
func (o *watch) founders(r *ownReplica, places []founding.Voter, voters []uint64) {
	for _, instance := range instances(places, voters) {
		if name := o.names[instance]; len(o.w.cfg.Founders) > 0 && !slices.Contains(o.w.cfg.Founders, name) {
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

// misplaced returns how the configuration of a healed group differs from the one that the rules
// require, or "".
func (w *world) misplaced(l *ownReplica) string {
	eligible := 0
	for _, m := range w.machines {
		if !m.gone && (len(w.cfg.Founders) == 0 || slices.Contains(w.cfg.Founders, m.name)) {
			eligible++
		}
	}
	wanted := min(w.cfg.Voters, eligible)
	votes := wanted - (wanted+1)%2
	c := l.Configuration()
	if len(c.Outgoing) > 0 || len(c.Voters) != votes || len(c.Learners) != wanted-votes {
		return "the configuration is not what is wanted: " + configText(c)
	}
	missing := len(c.Members)
	for r := range w.replicas() {
		switch {
		case replica.Names(c, r.ID, r.p.instance):
			missing--
		case r.Configuration().Index > 0:
			return r.p.String() + " runs a replica that was removed"
		}
	}
	if missing > 0 {
		return "no process runs a replica of the configuration: " + configText(c)
	}
	return ""
}

func configText(c *raftlog.Configuration) string {
	return fmt.Sprintf("voters %x, outgoing %x, learners %x at %d", c.Voters, c.Outgoing, c.Learners, c.Index)
}
