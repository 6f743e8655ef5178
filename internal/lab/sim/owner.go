package sim

import (
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/session/client"
)

func (p *proc) clusterTurn(clock.Time) clock.Time {
	next := p.core.Turn(p.foundingNow(), p.m.wallUnixMS(), p.w.random(), p.w.id(), p.w.rng.Uint64(), p)
	return p.m.origin + clock.Time(next)
}

// Store implements cluster.Owner.
func (p *proc) Store(*founding.Output) { p.persist() }

// persist makes the state of founding durable, and reports whether the process still runs. The
// power may fail immediately before or after.
func (p *proc) persist() bool {
	brittle := p.w.nemesis.brittle
	if d := p.m.disk; d == nil || p.saved == p.core.Founding.Revision() {
		brittle = 0
	} else if !p.w.befalls(powerFails, brittle, p.m.name) {
		state := p.core.Founding.State()
		d.state, p.saved = &state, p.core.Founding.Revision()
	} else {
		p.m.crashAndReturn()
		return false
	}
	p.w.watch.binds(p)
	if p.w.befalls(powerFails, brittle, p.m.name) {
		p.m.crashAndReturn()
	}
	return !p.dead
}

// Ended implements cluster.Owner.
func (p *proc) Ended() bool { return p.dead }

// Carry implements cluster.Owner. The next Survey shows the result of the step.
func (p *proc) Carry(c lead.Carry) {
	r, step := p.replica, c.Step
	if r == nil {
		return
	}
	p.w.note("%v changes the voters: %v %x, promote %x, demote %x, remove %x: %s", p, step.Kind, step.ID,
		step.Promote, step.Demote, step.Remove, step.Why)
	p.w.watch.carries(r, step)
	if change, changes := replica.Change(step, c.About); changes {
		r.log.post(func(clock.Time) { r.core.Change(c.Term, change) })
	} else if step.Kind == voters.Transfer {
		r.log.post(func(clock.Time) { _ = r.core.Transfer(step.ID) })
	}
}

// Gossip implements cluster.Owner. It reports success immediately.
func (p *proc) Gossip(addr string) { p.core.Gossiped(addr) }

// Told implements cluster.Owner.
func (p *proc) Told(told cluster.Told) {
	told.Inquiry.Caller.(func(*cluster.VoterStatus))(&told.VoterStatus)
}

// Dismiss implements cluster.Owner.
func (p *proc) Dismiss(raft uint64) {
	if r := p.replica; r != nil && r.ID == raft {
		p.w.note("%v ends its replica %x", p, r.ID)
		p.stopReplica()
		p.leaderKnown()
	}
	inbox{p}.Retired(raft)
}

// Tell implements cluster.Owner.
func (p *proc) Tell(events []founding.Event) {
	for _, e := range events {
		if p.carryOut(e); p.dead {
			return
		}
	}
}

func (p *proc) carryOut(e founding.Event) {
	r := p.replica
	switch e.Kind {
	case founding.BoundTo:
		p.bound(e)
	case founding.AllBound:
		if r != nil {
			r.keeping.post(r.keeper.AllBound)
		}
	case founding.Joined:
		p.w.note("%v is a member of group %x", p, e.Group)
		p.group, p.member = e.Group, true
		p.sessions.Rebind(p.record().Encode(), p.record().OwnSession().Encode(), replica.Targets(e.Voters))
	case founding.Heard:
		p.sessions.SetTargets(replica.Targets(e.Voters))
		if r != nil {
			r.glue.TellKeeper()
		}
	case founding.Restarted:
		p.w.note("%v restarts in place as %x: %s", p, e.Instance, e.Text)
		p.restartInPlace(e.Instance)
	case founding.Prepared:
		p.w.note("%v is prepared for group %x as %x", p, e.Group, e.Raft)
		p.stopReplica()
		p.replica, p.group = joinReplica(p, e.Group, e.Raft), e.Group
	case founding.Removed: // the replica runs until Dismiss is called
		p.w.note("%v is removed: replica %x", p, e.Raft)
		if r == nil || r.ID != e.Raft {
			inbox{p}.Retired(e.Raft)
		}
	case founding.Barred:
		p.w.broken("%v is barred though no directory was copied: %s", p, e.Text)
	}
}

func (p *proc) bound(e founding.Event) {
	p.w.note("%v is bound to group %x as %x", p, e.Group, e.Raft)
	p.group = e.Group
	if e.Raft == 0 {
		return
	}
	r, fresh := foundReplica(p, e.Charter, e.Raft)
	if fresh && p.core.Founding.Phase() == founding.Member {
		p.w.broken("%v is a member and its log is gone", p)
	}
	p.replica = r
	if len(e.Charter.Voters) == 1 {
		r.log.post(func(clock.Time) { r.core.Campaign() })
	}
}

// restartInPlace ends the old incarnation and begins a new one. The locks of the old incarnation
// end first.
func (p *proc) restartInPlace(instance nodeid.ID) {
	p.w.watch.leaves(p)
	p.sessions.Rebind(nil, nil, nil)
	p.w.watch.foundings.EndedEverywhere(nodeidtest.Number(p.instance))
	p.m.instance = instance
	p.w.watch.names[instance] = p.m.name
	p.stopReplica()
	if d := p.m.disk; d != nil {
		d.log, d.group, d.id = nil, 0, 0
	}
	p.hangUp()
	p.instance, p.group, p.member = instance, 0, false
	clear(p.dialing)
	clear(p.backOff)
}

func (p *proc) stopReplica() {
	if r := p.replica; r != nil {
		r.stop()
		p.replica = nil
	}
}

// Facts implements cluster.OwnState.
func (p *proc) Facts() (f voters.Facts, term uint64, leads bool) {
	r := p.replica
	if r == nil {
		return f, 0, false
	}
	own := replica.Own{Settings: p.own(), Durable: p.w.cfg.Durable, Leaving: p.leaving}
	f, term, leads = r.glue.Facts(p.m.clock(), own, &r.survey, p.linked)
	for _, o := range f.Replicas {
		if o.Instance.IsZero() {
			p.w.broken("%v surveys %x, which its configuration does not name", p, o.ID)
			return f, 0, false
		}
	}
	return f, term, leads
}

// Guide implements cluster.OwnState.
func (p *proc) Guide() nodeid.ID { return p.sessions.First.status().Asked }

// Leader implements cluster.OwnState.
func (p *proc) Leader() (instance nodeid.ID, addr string) {
	t := p.view().LeaderOr(p.core, p.sessions.First.status().Leader)
	return t.ID, t.Addr
}

func (p *proc) view() *replica.View {
	if p.replica == nil {
		return nil
	}
	return p.replica.View
}

// linked reports whether instance is this instance, or has a stream with this instance.
func (p *proc) linked(instance nodeid.ID) bool {
	return instance == p.instance || len(p.links[instance]) > 0
}

func (p *proc) leaderKnown() {
	known := p.view().KnowsLeader(p.sessions.First.phase == client.Attached)
	p.ofLife(func(now time.Duration) { p.core.Founding.Leader(now, known) })
}
