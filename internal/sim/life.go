package sim

import (
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/nodeid/nodeidtest"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
)

// This file stands for the shell of the cluster room and for the root package's life.go: it feeds birth and carries out what it decides.

func (p *proc) clusterTurn(clock.Time) clock.Time {
	now := p.birthNow()
	out := p.core.Tick(now, p.m.wallUnixMS(), p.w.random())
	if !p.persist() {
		return 0
	}
	for _, e := range p.core.Follow(now, out.Events) {
		if p.carryOut(e); p.dead {
			return 0
		}
	}
	acts := p.core.Act(now, p.w.id(), p.w.rng.Uint64())
	for _, q := range out.Questions {
		p.ask(q)
	}
	for _, c := range acts.Carry {
		p.carry(c)
	}
	for _, e := range acts.Errands {
		p.errand(e)
	}
	for _, addr := range acts.Gossip {
		p.core.Gossiped(addr) // gossip.go shows it when it can be heard
	}
	for _, told := range acts.Told {
		told.Inquiry.Caller.(func(cluster.Counsel, bool))(told.Counsel, true)
	}
	if acts.Dismissed != 0 {
		p.dismissed(acts.Dismissed)
	}
	return p.m.origin + clock.Time(min(out.Next, acts.Next))
}

// persist makes birth's state durable before anything shows it. A process may die right before it is, or right after.
func (p *proc) persist() bool {
	d := p.m.disk
	if d == nil || p.saved == p.core.Founding.Revision() {
		p.w.watch.binds(p)
		return true
	}
	if p.w.chance(p.w.nemesis.brittle) {
		p.m.crashAndReturn()
		return false
	}
	state := p.core.Founding.State()
	d.state, p.saved = &state, p.core.Founding.Revision()
	p.w.watch.binds(p)
	if p.w.chance(p.w.nemesis.brittle) {
		p.m.crashAndReturn()
		return false
	}
	return true
}

// crashAndReturn loses the power for a while, if the process still runs then.
func (p *proc) crashAndReturn() {
	if !p.dead {
		p.m.crashAndReturn()
	}
}

// crashAndReturn loses the power for a while.
func (m *machine) crashAndReturn() {
	m.crash(true)
	m.w.after(m.w.between(50*time.Millisecond, 5*time.Second), m.ensureUp)
}

func (m *machine) ensureUp() {
	if m.proc == nil && !m.gone {
		m.start()
	}
}

func (p *proc) carryOut(e founding.Event) {
	switch e.Kind {
	case founding.BoundTo:
		p.w.note("%v is bound to group %x as %x", p, e.Group, e.Raft)
		p.group = e.Group
		if e.Raft == 0 {
			break
		}
		r, fresh := foundReplica(p, e.Charter, e.Raft)
		if fresh && p.core.Founding.Phase() == founding.Member {
			p.w.broken("%v is a member and its log is gone", p)
		}
		p.replica = r
		if len(e.Charter.Voters) == 1 {
			r.log.post(func(clock.Time) { r.core.Campaign() })
		}
	case founding.AllBound:
		if r := p.replica; r != nil {
			r.allBound = true
			r.proposeBorn()
		}
	case founding.Joined:
		p.w.note("%v is a member of group %x", p, e.Group)
		p.group, p.member = e.Group, true
		p.rebind(p.record(), targets(e.Voters))
	case founding.Heard:
		p.owner.post(func(now clock.Time) { p.client.SetTargets(now, targets(e.Voters)) })
		if r := p.replica; r != nil {
			r.tellKeeper()
		}
	case founding.Restarted:
		p.w.note("%v restarts in place as %x: %s", p, e.Instance, e.Text)
		p.restartInPlace(e.Instance)
	case founding.Prepared:
		p.prepared(e.Group, e.Raft)
	case founding.Removed:
		p.removed(e.Raft)
	case founding.Barred:
		p.w.broken("%v is barred though no directory was copied: %s", p, e.Text)
	}
}

// restartInPlace ends the old life: its locks first.
func (p *proc) restartInPlace(instance nodeid.ID) {
	p.w.watch.leaves(p)
	p.rebind(nil, nil)
	p.w.watch.births.EndedEverywhere(nodeidtest.Number(p.instance))
	p.m.instance = instance
	p.w.watch.names[instance] = p.m.name
	if r := p.replica; r != nil {
		r.stop()
		p.replica = nil
	}
	if d := p.m.disk; d != nil {
		d.log, d.group, d.id = nil, 0, 0
	}
	p.hangUp()
	p.instance, p.group, p.member = instance, 0, false
	clear(p.dialing)
	clear(p.backOff)
}

func (p *proc) record() []byte {
	own := p.own()
	return replica.Record{
		Instance: p.instance.String(), Name: p.m.name, Zone: p.m.zone, Addr: p.m.addr, Rules: lockfsm.RulesVersion,
		Settings: own.Named(), Founders: own.Founders,
	}.Encode()
}

func targets(voters []founding.Voter) []session.Target {
	list := make([]session.Target, 0, len(voters))
	for _, v := range voters {
		list = append(list, session.Target{Peer: v.Instance, Addr: v.Addr})
	}
	return list
}

// leaderKnown tells birth whether this instance knows a leader: its own replica is one witness of that, and its session another.
func (p *proc) leaderKnown() {
	r := p.replica
	known := p.phase == client.Attached || r != nil && r.role.Leader != 0
	p.ofLife(func() { p.core.Founding.Leader(p.birthNow(), known) })
}

// ofLife runs f on the cluster's owner, unless this life is over by then.
func (p *proc) ofLife(f func()) {
	instance := p.instance
	p.cluster.post(func(clock.Time) {
		if p.alive(instance) {
			f()
		}
	})
}

// look says that the facts may have changed.
func (p *proc) look() { p.cluster.post(func(clock.Time) { p.core.Look() }) }
