package sim

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/cluster/birth"
	"github.com/mortise-lock/mortise/internal/check"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
)

// This file is what the watch sees of groups and their logs.

// stateEvery is after how many entries the states of replicas are compared; after all of them would cost more than the run.
const stateEvery = 16

func (o *watch) founded(c *birth.Charter) {
	if o.groups[c.Group] == nil {
		o.groups[c.Group] = &group{charter: *c}
	}
}

// born sees Born applied for the first time.
func (o *watch) born(r *replica) {
	g := o.groups[r.group]
	if g.born {
		return
	}
	g.born = true
	o.stats.Groups++
	o.w.note("group %x is born", r.group)
	var voters []uint64
	for _, v := range g.charter.Voters {
		voters = append(voters, v.Instance)
	}
	o.w.must(o.births.Born(r.group, g.charter.FoundedUnixMS, voters...))
}

// replicaStarts sees a replica begin, with what its store holds.
func (o *watch) replicaStarts(r *replica, state raftlog.State) {
	o.w.numbers++
	r.who = fmt.Sprintf("%v, replica %x of group %x, life %d", r.p, r.id, r.group, o.w.numbers)
	r.trail = history.NewTrail(r.group, func(e history.Event) { o.trail(r, e) })
	o.voted(r, state.HardState)
}

// saved sees what a replica has stored. What it was about to store when its power failed binds nobody.
func (o *watch) saved(r *replica, b *raftlog.Batch) { o.voted(r, b.HardState) }

func (o *watch) voted(r *replica, hard *raftpb.HardState) {
	if hard != nil {
		o.w.must(o.raft.Votes(r.group, hard.GetTerm(), r.id, hard.GetVote()))
	}
}

// sends sees what a replica says to another. A vote counts from the moment at which somebody may know of it.
func (o *watch) sends(r *replica, messages []*raftpb.Message) {
	for _, m := range messages {
		if m.GetType() != raftpb.MsgVoteResp || m.GetReject() {
			continue
		}
		o.w.must(o.raft.Votes(r.group, m.GetTerm(), r.id, m.GetTo()))
		if disk := r.p.m.disk; disk != nil && o.w.chance(o.w.nemesis.brittle) {
			o.w.after(o.w.between(0, 2*o.w.net.latency), r.p.crashAndReturn)
		}
	}
}

// trail takes a line of a replica's account.
func (o *watch) trail(r *replica, e history.Event) {
	o.record(r.p, e)
	if !r.first {
		return
	}
	switch e.Kind {
	case history.Grant:
		o.w.must(o.tokens.Grant(e.Key, e.Token))
	case history.End:
		o.groups[r.group].acks.Ended(e.Index, e.Key, e.Token, e.How.String())
	}
}

func (o *watch) role(r *replica) {
	if r.role.Leading {
		o.stats.Terms++
		o.w.must(o.raft.Leads(r.group, r.role.Term, r.id))
	}
}

// restored sees a replica take over a whole state.
func (o *watch) restored(r *replica, e *raftlog.Event) {
	r.first = false
	r.trail.Start(e.Index, r.machine)
	o.compare(r, e.Index)
}

// applies sees an entry, before it is applied.
func (o *watch) applies(r *replica, e *raftlog.Event) {
	sum := check.Sum(e.Data)
	o.w.must(o.raft.Committed(r.group, e.Index, e.Term, sum, r.who))
	o.w.mark('a', e.Index, sum)
	g := o.groups[r.group]
	if r.first = o.front.First(r.group, e.Index); r.first || e.Index > g.front {
		o.stats.Entries++
		g.front = max(g.front, e.Index)
	}
	r.trail.Entry(e.Index, e.Data)
}

func (o *watch) result(r *replica, result *lockfsm.Result) {
	if r.first && result.Kind == lockfsm.Expire && result.Code == lockfsm.Done {
		o.stats.Expired++
	}
	r.trail.Result(*result, r.machine)
}

// applied sees an entry, after it was applied.
func (o *watch) applied(r *replica, e *raftlog.Event) {
	if e.Index%stateEvery == 0 {
		o.compare(r, e.Index)
	}
}

// compare looks at the whole state of a replica.
func (o *watch) compare(r *replica, index uint64) {
	o.w.must(r.machine.Check())
	o.w.must(o.hashes.Applied(r.group, index, check.Sum(r.machine.Snapshot(nil)), r.who))
	o.w.must(o.groups[r.group].acks.Replica(r.who, index, check.Holders(r.machine.Entries())))
	o.w.must(o.rising.Observed(r.who, check.Progress{
		Term: r.role.Term, Commit: r.core.Status().Commit, Applied: index, Revision: uint64(r.machine.Revision()),
	}))
}
