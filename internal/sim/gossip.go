package sim

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/birth"
	"github.com/mortise-lock/mortise/internal/clock"
)

// This file stands for all by which instances find each other: gossip, name resolution, and the questions of birth.

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
		if p.persist() && b != nil {
			then(b)
		}
	})
}
