package sim

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
)

// This file stands for gossip and for name resolution.

// heardOf lists the processes that gossip would show now: the founders that can be heard, in the
// order of the machines, if this is one. With Replicas every instance founds. The others do not
// gossip.
func (p *proc) heardOf() []*proc {
	var all []*proc
	settings := p.w.cfg.settings()
	if !settings.Founds(p.m.name) {
		return nil
	}
	for _, m := range p.w.machines {
		if m.proc != nil && m.proc != p && settings.Founds(m.name) && p.w.net.linked(p.m, m) {
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
	var join []founding.Entry
	for _, m := range w.machines {
		if len(w.cfg.Founders) == 0 || w.cfg.JoinAll || slices.Contains(w.cfg.Founders, m.name) {
			join = append(join, founding.Entry{Name: m.name + ":1", Addrs: []string{m.dns}, Resolved: p.birthNow()})
		}
	}
	seen := p.heardOf()
	metas := make([]meta, 0, len(seen))
	var addrs []string
	var streams []int
	for _, o := range seen {
		addrs, streams, metas = append(addrs, o.m.addr), append(streams, o.stream), append(metas, o.meta())
	}
	if i := w.insider; i != nil && p.group != 0 && w.cfg.settings().Founds(p.m.name) {
		said := i.gossip(p)
		addrs, streams, metas = append(addrs, said.addr), append(streams, i.p.stream), append(metas, said)
	}
	p.cluster.post(func(clock.Time) {
		p.birth.Places(join, addrs)
		p.seen(streams, metas)
	})
	w.after(w.between(300*time.Millisecond, 1500*time.Millisecond), p.gossip)
}
