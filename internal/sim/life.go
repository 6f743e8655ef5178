package sim

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/birth"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/session"
)

// This file stands for the shell of the cluster room and for the root package's life.go: it feeds birth and carries out what it decides.

func (p *proc) clusterTurn(clock.Time) clock.Time {
	out := p.birth.Tick(p.birthNow(), p.m.wallUnixMS(), p.w.random())
	if !p.persist(&out) {
		return 0
	}
	for _, e := range out.Events {
		if p.carryOut(e); p.dead {
			return 0
		}
	}
	for _, q := range out.Questions {
		p.ask(q)
	}
	return p.m.origin + clock.Time(out.Next)
}

// persist makes birth's state durable before anything shows it. A process may die right before it is, or right after.
func (p *proc) persist(*birth.Output) bool {
	d := p.m.disk
	if d == nil || p.saved == p.birth.Revision() {
		return true
	}
	if p.w.chance(p.w.nemesis.brittle) {
		p.m.crashAndReturn()
		return false
	}
	state := p.birth.State()
	d.state, p.saved = &state, p.birth.Revision()
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
	if m.proc == nil {
		m.start()
	}
}

func (p *proc) carryOut(e birth.Event) {
	switch e.Kind {
	case birth.BoundTo:
		p.w.note("%v is bound to group %x as %x", p, e.Group, e.Raft)
		p.raft, p.group = e.Raft, e.Group
		p.configure(e.Group, e.Charter.Voters)
		if e.Raft == 0 {
			break
		}
		r, fresh := newReplica(p, e.Charter, e.Raft)
		if fresh && p.birth.Phase() == birth.Member {
			p.w.broken("%v is a member and its log is gone", p)
		}
		p.replica = r
		if len(e.Charter.Voters) == 1 {
			r.log.post(func(clock.Time) { r.core.Campaign() })
		}
	case birth.AllBound:
		if r := p.replica; r != nil {
			r.allBound = true
			r.proposeBorn()
		}
	case birth.Joined:
		p.w.note("%v is a member of group %x", p, e.Group)
		p.group = e.Group
		p.configure(e.Group, e.Voters)
		p.rebind(p.record(), targets(p.book.Voters()))
	case birth.Restarted:
		p.w.note("%v restarts in place as %x: %s", p, e.Instance, e.Text)
		p.restartInPlace(e.Instance)
	case birth.Heard:
		changed := false
		for _, v := range e.Voters {
			changed = p.book.Hear(v, false) || changed
		}
		p.readdressed(changed)
	case birth.Barred:
		p.w.broken("%v is barred though no directory was copied: %s", p, e.Text)
	}
}

// restartInPlace ends the old life: its locks first.
func (p *proc) restartInPlace(instance uint64) {
	p.rebind(nil, nil)
	p.w.watch.births.EndedEverywhere(p.instance)
	p.m.instance = instance
	if r := p.replica; r != nil {
		r.stop(false)
		p.replica = nil
	}
	if d := p.m.disk; d != nil {
		d.log, d.group, d.id = nil, 0, 0
	}
	p.hangUp()
	p.instance, p.group, p.raft, p.book = instance, 0, 0, birth.Book{}
	clear(p.dialing)
	clear(p.backOff)
}

func (p *proc) record() []byte { return []byte(p.m.name) }

func targets(voters []birth.Voter) []session.Target {
	list := make([]session.Target, 0, len(voters))
	for _, v := range voters {
		list = append(list, session.Target{Peer: session.Peer(v.Instance), Addr: v.Addr})
	}
	return list
}

func (p *proc) configure(group uint64, voters []birth.Voter) {
	p.book.Configure(voters)
	for _, o := range p.heardOf() {
		if o.group == group && o.raft != 0 {
			p.book.Hear(o.voter(), true)
		}
	}
	if p.raft != 0 {
		p.book.Hear(p.voter(), true)
	}
	p.birth.Voters(group, p.book.Voters())
}

func (p *proc) voter() birth.Voter {
	return birth.Voter{Raft: p.raft, Instance: p.instance, Addr: p.m.addr, Life: p.birth.Life()}
}

func (p *proc) readdressed(changed bool) {
	if !changed {
		return
	}
	voters := p.book.Voters()
	p.birth.Voters(p.birth.Group(), voters)
	if p.birth.Phase() == birth.Member && !p.birth.Settling() {
		p.owner.post(func(now clock.Time) { p.client.SetTargets(now, targets(voters)) })
		if r := p.replica; r != nil {
			r.tellKeeper()
		}
	}
}

// heardOf lists whom gossip would show now: everybody who can be heard, in the order of the machines.
func (p *proc) heardOf() []*proc {
	var all []*proc
	for _, m := range p.w.machines {
		if m.proc != nil && m.proc != p && p.w.net.linked(p.m, m) {
			all = append(all, m.proc)
		}
	}
	return all
}

// gossip stands for gossip and for name resolution: once in a while the cluster room hears who is where.
func (p *proc) gossip() {
	if p.dead {
		return
	}
	w := p.w
	var join []birth.Entry
	for _, m := range w.machines {
		if len(w.cfg.Founders) == 0 || slices.Contains(w.cfg.Founders, m.name) {
			join = append(join, birth.Entry{Name: m.name + ":1", Addrs: []string{m.dns}, Resolved: p.birthNow()})
		}
	}
	seen := p.heardOf()
	metas := make([]birth.Voter, 0, len(seen))
	var addrs []string
	for _, o := range seen {
		addrs = append(addrs, o.m.addr)
		if o.raft != 0 && o.group != 0 && o.group == p.group {
			metas = append(metas, o.voter())
		}
	}
	group := p.group
	p.cluster.post(func(clock.Time) {
		p.birth.Places(join, addrs)
		if p.birth.Group() != group {
			return
		}
		changed := false
		for _, v := range metas {
			changed = p.book.Hear(v, true) || changed
		}
		p.readdressed(changed)
	})
	w.after(w.between(300*time.Millisecond, 1500*time.Millisecond), p.gossip)
}

// tellBirth tells birth whether this instance knows a leader.
func (p *proc) tellBirth(known bool) {
	instance := p.instance
	p.cluster.post(func(clock.Time) {
		if p.alive(instance) {
			p.birth.Leader(p.birthNow(), known)
		}
	})
}

// ask puts one of birth's questions to an address.
func (p *proc) ask(q birth.Question) {
	w, instance, asked := p.w, p.instance, p.birthNow()
	answered := false
	finish := func(outcome birth.Outcome, answer []byte) {
		if answered || !p.alive(instance) {
			return
		}
		answered = true
		p.cluster.post(func(clock.Time) {
			if p.alive(instance) {
				p.birth.Result(p.birthNow(), q.ID, asked, outcome, answer)
			}
		})
	}
	w.after(time.Second, func() { finish(birth.Silent, nil) })
	w.after(w.net.hop(), func() {
		m := w.at(q.Addr)
		switch {
		case m == nil:
			w.after(w.net.hop(), func() { finish(birth.Refused, nil) })
		case !w.net.linked(p.m, m) || w.now < m.pausedUntil || w.chance(w.net.drop):
		case m.proc == nil:
			w.after(w.net.hop(), func() { finish(birth.Refused, nil) })
		case q.To != 0 && q.To != m.proc.instance:
			w.after(w.net.hop(), func() { finish(birth.Other, nil) })
		default:
			m.proc.answer(q.Body, func(b []byte) {
				if w.net.linked(p.m, m) {
					w.after(w.net.hop(), func() { finish(birth.Answered, b) })
				}
			})
		}
	})
}

// answer answers a question of birth once that to which it binds this instance is stored.
func (p *proc) answer(body []byte, then func([]byte)) {
	p.cluster.post(func(clock.Time) {
		b := p.birth.Ask(p.birthNow(), p.m.wallUnixMS(), body)
		if p.persist(nil) && b != nil {
			then(b)
		}
	})
}
