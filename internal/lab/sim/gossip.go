package sim

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/internal/clock"
)

// heardOf returns the processes that gossip would show to this process now: the reachable founders,
// in the order of the machines. It returns nil if this process is no founder, because only founders
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

func (p *proc) gossip() {
	if p.dead {
		return
	}
	w := p.w
	var join []founding.Entry
	for _, m := range w.machines {
		if len(w.cfg.Founders) == 0 || w.cfg.JoinAll || slices.Contains(w.cfg.Founders, m.name) {
			join = append(join, founding.Entry{Name: m.name + ":1", Addrs: []string{m.dns}, Resolved: p.foundingNow()})
		}
	}
	seen := p.heardOf()
	news := make([]gossip.News, 0, len(seen))
	for _, o := range seen {
		news = append(news, gossip.News{Name: strconv.Itoa(o.stream), Meta: o.core.Meta(), Here: true})
	}
	if i := w.insider; i != nil && p.group != 0 && w.cfg.settings().Founds(p.m.name) {
		news = append(news, gossip.News{Name: strconv.Itoa(i.p.stream), Meta: i.gossip(p), Here: true})
	}
	p.cluster.post(func(clock.Time) { p.hear(join, news) })
	w.after(w.between(300*time.Millisecond, 1500*time.Millisecond), p.gossip)
}

// hear passes the present results of gossip, and the resolved names of the setting Join, to the
// core.
func (p *proc) hear(join []founding.Entry, news []gossip.News) {
	now := p.foundingNow()
	p.core.Resolved(now, join, nil)
	for _, name := range slices.Sorted(maps.Keys(p.core.Peers())) {
		if !slices.ContainsFunc(news, func(n gossip.News) bool { return n.Name == name }) {
			p.core.Seen(now, gossip.News{Name: name})
		}
	}
	for _, n := range news {
		p.core.Seen(now, n)
	}
}
