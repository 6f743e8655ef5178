package sim

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// peopleEvery is how often somebody looks whether a group is lost for good.
const peopleEvery = 10 * time.Second

// people are those who run the instances: a group whose disks are lost they give up, on each instance that is left of it, some seconds apart,
// until none keeps it.
func (w *world) people() {
	for _, group := range w.watch.births.Lost() {
		for _, m := range w.machines {
			if m.disk == nil || m.disk.state == nil || m.disk.state.Group != group {
				continue
			}
			w.after(w.between(0, peopleEvery), func() { m.recover(group) })
		}
	}
	w.after(w.between(peopleEvery, 2*peopleEvery), w.people)
}

// recover is a call of Recover on whatever runs there.
func (m *machine) recover(group uint64) {
	p := m.proc
	if p == nil {
		return
	}
	p.cluster.post(func(clock.Time) {
		if r := p.replica; r != nil && r.glue.Machine() != nil {
			p.core.Founding.Floor(int64(r.glue.Machine().Revision() >> 21)) // the token's time
		}
		if err := p.core.Founding.Recover(p.birthNow(), group); err != nil {
			p.w.note("%v does not recover: %v", p, err)
			return
		}
		p.w.note("%v gives group %x up", p, group)
		p.w.watch.stats.Recovered++
		p.w.watch.gaveUp[group] = true
	})
}
