package sim

import (
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/keeper"
)

// This file is where the core of a replica meets this world: what it says goes to the keeper's and the
// cluster's owners, and to the watch.

// Applying implements replica.Host. The watch has seen the entry.
func (r *ownReplica) Applying(uint64, []byte) {}

// Applied implements replica.Host.
func (r *ownReplica) Applied(result *lockfsm.Result) { r.p.w.watch.result(r, result) }

// Answer implements replica.Host.
func (r *ownReplica) Answer(result *lockfsm.Result) { r.results = append(r.results, result.Clone()) }

// Confirmed implements replica.Host.
func (r *ownReplica) Confirmed(term, round uint64) {
	r.keeping.post(func(now clock.Time) { r.keeper.Confirmed(now, term, round) })
}

// Leads implements replica.Host.
func (r *ownReplica) Leads(lead keeper.Leadership) {
	r.keeping.post(func(now clock.Time) { r.keeper.Leads(now, lead) })
}

// Born implements replica.Host.
func (r *ownReplica) Born() clock.Time {
	r.born = true
	r.p.w.watch.born(r)
	p, group := r.p, r.group
	p.cluster.post(func(clock.Time) { p.core.Founding.Born(p.birthNow(), group) })
	return p.m.clock()
}

// Charter implements replica.Host.
func (r *ownReplica) Charter(rules uint32, settings *replica.Settings) {
	if r.rules = rules; settings == nil {
		return
	}
	r.p.w.adopted(r, settings)
	r.settings = settings
	p, group, adopted := r.p, r.group, settings.Founding(false)
	p.ofLife(func() { p.core.Founding.Adopt(p.birthNow(), group, adopted) })
}

// Look implements replica.Host.
func (r *ownReplica) Look() { r.p.look() }
