package sim

import (
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
)

// This file is a process that waits for what the leader says about its voters, as Consult of the
// cluster room does.

// asking is a consultation under way.
type asking struct {
	p    *proc
	raft *uint64 // nil: of this instance
	then func(cluster.Counsel, bool)
	over bool
	try  int
}

// consult asks until a leader has answered, and calls then; with false if that takes longer than within.
func (p *proc) consult(raft *uint64, within time.Duration, then func(cluster.Counsel, bool)) {
	a := &asking{p: p, raft: raft, then: then}
	p.later(within, func() { a.end(cluster.Counsel{}, false) })
	a.attempt()
}

func (a *asking) end(c cluster.Counsel, ok bool) {
	if !a.over && !a.p.dead {
		a.over = true
		a.then(c, ok)
	}
}

// attempt asks once.
func (a *asking) attempt() {
	p := a.p
	p.cluster.post(func(clock.Time) {
		if a.over {
			return
		}
		route := p.core.Consult(p.birthNow(), a.raft, a.try, p.w.id(), p.w.rng.Uint64())
		a.try++
		if route.Counsel != nil {
			p.later(0, func() { a.end(*route.Counsel, true) })
			return
		}
		a.follow(&route)
	})
}

// follow puts the question along a route, as far as that leads.
func (a *asking) follow(r *cluster.Route) {
	if r.Addr == "" {
		a.p.later(r.Pause, a.attempt)
		return
	}
	a.p.put(r.Addr, r.To, query{consult: &r.Question}, func(outcome founding.Outcome, got reply) {
		switch {
		case a.over || a.p.dead:
		case outcome == founding.Answered && r.Advised(got.advice):
			a.follow(r)
		case r.Counsel != nil:
			a.end(*r.Counsel, true)
		default:
			a.p.later(r.Pause, a.attempt)
		}
	})
}
