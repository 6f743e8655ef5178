package sim

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/keeper"
)

// actor simulates a goroutine that owns a core. Functions that are passed to post wait in the inbox
// for the next turn.
type actor struct {
	p      *proc
	inbox  []func(now clock.Time)
	roused bool
	ended  bool
	timer  int
	turn   func(now clock.Time) (next clock.Time) // returns zero if nothing is due
	busy   bool                                   // a turn is running
}

func (a *actor) post(f func(now clock.Time)) {
	if a.gone() {
		return
	}
	a.inbox = append(a.inbox, f)
	a.rouse()
}

func (a *actor) gone() bool { return a.ended || a.p.dead }

func (a *actor) rouse() {
	if a.roused || a.gone() {
		return
	}
	a.roused = true
	w := a.p.w
	slow := 40 * time.Microsecond
	if w.befalls(sluggish, w.nemesis.sluggish, a.p.m.name) {
		slow = 20 * time.Millisecond
	}
	w.after(w.between(0, slow), a.wake)
}

func (a *actor) wake() {
	w := a.p.w
	if a.gone() {
		return
	}
	if until := a.p.m.pausedUntil; w.now < until {
		w.after(until-w.now+w.between(0, time.Millisecond), a.wake)
		return
	}
	a.roused = false
	a.run()
}

// run executes one turn. Another actor of the same process may call run at a point where, in the
// product, one goroutine would wait for the other.
func (a *actor) run() {
	if a.gone() || a.busy {
		return
	}
	defer func() {
		if c := recover(); c != nil {
			a.p.w.broken("panic on %v: %v", a.p, c)
		}
	}()
	a.busy = true
	now := a.p.m.clock()
	inbox := a.inbox
	a.inbox = nil
	for _, f := range inbox {
		if a.gone() {
			break
		}
		f(now)
	}
	var next clock.Time
	if !a.gone() {
		next = a.turn(now)
	}
	a.busy = false
	a.timer++
	if a.gone() || next == 0 {
		return
	}
	set := a.timer
	wait := max(a.p.m.global(next)-a.p.w.now, 0)
	a.p.w.after(max(wait, 20*time.Microsecond), func() {
		if set == a.timer {
			a.rouse()
		}
	})
}

// ofLife runs f in a turn of the cluster's owner, unless this incarnation has ended before that
// turn.
func (p *proc) ofLife(f func(now time.Duration)) {
	instance := p.instance
	p.cluster.post(func(clock.Time) {
		if p.alive(instance) {
			f(p.foundingNow())
		}
	})
}

// inbox posts to the inbox of the cluster's owner. It implements replica.Cluster.
type inbox struct{ p *proc }

func (i inbox) Voter(raft uint64) (founding.Voter, bool) { return i.p.core.Voter(raft) }

func (i inbox) Look() { i.p.cluster.post(func(clock.Time) { i.p.core.Look() }) }

func (i inbox) Log(raft uint64, log founding.Log) {
	i.p.ofLife(func(now time.Duration) { i.p.core.Founding.Log(now, raft, log) })
}

func (i inbox) Configured(group, at uint64, voters []founding.Voter) {
	i.p.ofLife(func(now time.Duration) { i.p.core.Configured(now, group, at, voters) })
}

func (i inbox) Applied(group uint64, applied founding.Configuration) {
	i.p.ofLife(func(now time.Duration) { i.p.core.Founding.Applied(now, group, applied) })
}

func (i inbox) BornApplied(group uint64) {
	i.p.ofLife(func(now time.Duration) { i.p.core.Founding.Born(now, group) })
}

func (i inbox) Adopt(group uint64, s founding.Settings) {
	i.p.ofLife(func(now time.Duration) { i.p.core.Founding.Adopt(now, group, s) })
}

func (i inbox) Retired(raft uint64) {
	i.p.ofLife(func(now time.Duration) { i.p.core.Retired(now, raft) })
}

type keeperInbox struct {
	*actor
	core *keeper.Core
	of   *ownReplica
}

func (k keeperInbox) Role(r keeper.Role) { k.post(func(now clock.Time) { k.core.Role(now, r) }) }

func (k keeperInbox) Leads(l keeper.Leadership) {
	k.post(func(now clock.Time) { k.core.Leads(now, l) })
}

func (k keeperInbox) Applied(result *lockfsm.Result) {
	results := []lockfsm.Result{result.Clone()}
	k.post(func(now clock.Time) { k.core.Applied(now, results) })
}

func (k keeperInbox) Yield(id lockfsm.SessionID, n lockfsm.Number) {
	k.post(func(now clock.Time) { k.core.Yield(now, id, n) })
}

func (k keeperInbox) Confirmed(term, round uint64) {
	k.post(func(now clock.Time) {
		k.of.p.w.watch.round(k.of, check.RoundConfirmed, round)
		k.core.Confirmed(now, term, round)
	})
}

func (k keeperInbox) Searched(term uint64, found lockfsm.Search) {
	k.post(func(now clock.Time) { k.core.Searched(now, term, found) })
}

func (k keeperInbox) ProposeAdopt(term uint64, ttl time.Duration, settings []byte, budgets session.Budgets) {
	k.post(func(now clock.Time) { k.core.ProposeAdopt(now, term, ttl, settings, budgets) })
}

func (k keeperInbox) ProposeRaise(term uint64, version uint32) {
	k.post(func(now clock.Time) { k.core.ProposeRaise(now, term, version) })
}
