package sim

import (
	"slices"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/internal/clock"
)

// gossiping shows the processes to each other.
type gossiping struct {
	w       *fleet
	insider *insider // may be nil
}

// heardOf returns the processes that gossip would show to this process now: the reachable founders,
// in the order of the machines. It returns nil if this process is no founder, because only founders
// gossip.
func (g gossiping) heardOf(p *proc) []*proc {
	var all []*proc
	settings := p.w.cfg.settings()
	if !settings.Founds(p.m.name) {
		return nil
	}
	for _, m := range g.w.machines {
		if m.proc != nil && m.proc != p && settings.Founds(m.name) && g.w.net.linked(p.m, m.machine) {
			all = append(all, m.proc)
		}
	}
	return all
}

func (g gossiping) gossip(p *proc) {
	if p.dead {
		return
	}
	w := g.w
	var join []founding.Entry
	for _, m := range w.machines {
		if len(w.cfg.Founders) == 0 || w.cfg.JoinAll || slices.Contains(w.cfg.Founders, m.name) {
			join = append(join, founding.Entry{Name: m.name + ":1", Addrs: []string{m.dns}, Resolved: p.foundingNow()})
		}
	}
	seen := g.heardOf(p)
	news := make([]gossip.News, 0, len(seen))
	for _, o := range seen {
		news = append(news, gossip.News{Name: strconv.Itoa(o.stream), Meta: o.core.Meta(), Here: true})
	}
	if i := g.insider; i != nil && p.group != 0 && w.cfg.settings().Founds(p.m.name) {
		news = append(news, gossip.News{Name: strconv.Itoa(i.p.stream), Meta: i.gossip(p.life), Here: true})
	}
	p.cluster.post(func(clock.Time) { p.hear(join, news) })
	w.after(w.between(300*time.Millisecond, 1500*time.Millisecond), func() { g.gossip(p) })
}
