package sim

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/lead"
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
	p.pullNewer(now)
	out := p.birth.Tick(now, p.m.wallUnixMS(), p.w.random())
	if !p.persist() {
		return 0
	}
	for _, e := range out.Events {
		if p.carryOut(e); p.dead {
			return 0
		}
	}
	next := min(out.Next, p.govern(now), p.pullDue(now))
	for _, q := range out.Questions {
		p.ask(q)
	}
	return p.m.origin + clock.Time(next)
}

// persist makes birth's state durable before anything shows it. A process may die right before it is, or right after.
func (p *proc) persist() bool {
	d := p.m.disk
	if d == nil || p.saved == p.birth.Revision() {
		p.w.watch.binds(p)
		return true
	}
	if p.w.chance(p.w.nemesis.brittle) {
		p.m.crashAndReturn()
		return false
	}
	state := p.birth.State()
	d.state, p.saved = &state, p.birth.Revision()
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
		p.raft, p.group = e.Raft, e.Group
		p.configure(e.Group, charterAt, e.Charter.Voters)
		if e.Raft == 0 {
			break
		}
		r, fresh := foundReplica(p, e.Charter, e.Raft)
		if fresh && p.birth.Phase() == founding.Member {
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
		p.configure(e.Group, e.At, e.Voters)
		p.rebind(p.record(), targets(p.book.Voters()))
	case founding.Restarted:
		p.w.note("%v restarts in place as %x: %s", p, e.Instance, e.Text)
		p.restartInPlace(e.Instance)
	case founding.Heard:
		p.configured(e.Group, e.At, e.Voters)
	case founding.Prepared:
		p.raft = e.Raft
		p.prepared(e.Group, e.Raft)
	case founding.Removed:
		if p.raft == e.Raft {
			p.raft = 0
		}
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
	p.instance, p.group, p.raft, p.book, p.member = instance, 0, 0, founding.Book{}, false
	p.pull, p.lead = pulling{}, lead.Lead{}
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

// charterAt is the index of the configuration that a charter makes.
const charterAt = 1

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
	p.ofLife(func() { p.birth.Leader(p.birthNow(), known) })
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
