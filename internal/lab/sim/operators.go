package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/clock"
)

// operatorsEvery is the shortest time between two checks for permanently lost groups.
const operatorsEvery = 10 * time.Second

// operators simulates operators. They call Recover for a lost group on each of its instances, and
// empty the directory of an instance that was away for too long.
func (w *world) operators() {
	for _, group := range w.watch.foundings.Lost() {
		for _, m := range w.machines {
			if m.disk == nil || m.disk.state == nil || m.disk.state.Group != group {
				continue
			}
			w.after(w.between(0, operatorsEvery), func() { m.recover(group) })
		}
	}
	for _, m := range w.machines {
		if m.strange() {
			w.note("%s is told to empty its directory", m.name)
			w.nemesis.wipe(m)
		}
	}
	w.after(w.between(operatorsEvery, 2*operatorsEvery), w.operators)
}

// strange reports whether operators must empty the directory of the instance. There are three
// conditions. The instance waits for an empty directory. It has no running replica, and no removed
// replica whose vote may be needed. All voters that it knows have been replaced.
func (m *machine) strange() bool {
	p := m.proc
	if m.disk == nil || p == nil || p.replica != nil || m.needed() ||
		!strings.Contains(p.core.Founding.Waiting(), "empty its directory") {
		return false
	}
	return !slices.ContainsFunc(p.core.Voters(), func(v cluster.Voter) bool {
		return !v.Learner && slices.ContainsFunc(m.w.machines,
			func(o *machine) bool { return o.instance == v.Instance })
	})
}

func (m *machine) recover(group uint64) {
	p := m.proc
	if p == nil {
		return
	}
	p.cluster.post(func(clock.Time) {
		if r := p.replica; r != nil && r.glue.Machine() != nil {
			// a revision without its lower 21 bits is a time in Unix milliseconds
			p.core.Founding.Floor(int64(r.glue.Machine().Revision() >> 21))
		}
		if err := p.core.Founding.Recover(p.foundingNow(), group); err != nil {
			p.w.note("%v does not recover: %v", p, err)
			return
		}
		p.w.note("%v gives group %x up", p, group)
		p.w.watch.stats.Recovered++
		p.w.watch.gaveUp[group] = true
	})
}
