package sim

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/check"
)

// This file counts the faults that meet stays.

// recalls observes that a request with these terms joins the queue of a key.
func (o *watch) recalls(r *ownReplica, key string, terms check.Terms) {
	l := o.w.leader()
	for p := range o.w.procs() {
		for _, k := range p.kept {
			if k.key != key || k.group != r.Group || k.asked != 0 || k.terms.Beside(terms) {
				continue
			}
			k.asked, k.breaks = o.w.now, p.breaks
			if k.released {
				o.stats.Crossed++
			}
			if l != nil && o.w.net.blocked(l.p.m, p.m) && !o.w.net.blocked(p.m, l.p.m) {
				o.stats.Deaf++
			}
		}
	}
}

// hears observes that a process hears the recall of a stay.
func (o *watch) hears(p *proc, k *keptStay) {
	if k.asked == 0 {
		return
	}
	if p.breaks != k.breaks {
		o.stats.RecallsLost++
	}
	if o.w.now-k.asked > o.w.cfg.TTL/2 {
		o.stats.RecallsLate++
	}
}

// givesBack observes the release of a stay.
func (o *watch) givesBack(p *proc, k *keptStay) {
	anyWaits := slices.ContainsFunc(p.calls, func(c *call) bool {
		return c.kept && c.stage == waits && c.req.Key == k.key && c.req.Shared() == (k.terms.Permits > 0)
	})
	tokens := k.last - k.first
	if n := o.w.cfg.StayTokens; n > 0 {
		tokens = min(tokens, n)
	}
	switch {
	case k.recalled:
		o.stats.Recalled++
	case k.passes > 0 && k.newest >= k.first+tokens:
		o.stats.UsedUp++
	case anyWaits && o.w.now-k.granted >= o.w.cfg.TTL:
		o.stats.Aged++
	}
}

// diedKept observes that a process ends with its stays.
func (o *watch) diedKept(p *proc) {
	for q, k := range p.kept {
		if !k.released && p.stays.IsFree(q) {
			o.stats.Died++
		}
	}
}
