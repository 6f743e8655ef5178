package sim

import (
	"slices"
	"time"
)

// operatorsEvery is the shortest time between two checks for permanently lost groups.
const operatorsEvery = 10 * time.Second

// operators simulates operators. They call Recover for a lost group on each of its instances, and
// empty the directory of an instance that was away for too long.
func (w *fleet) operators() {
	for _, group := range w.watch.voters.foundings.Lost() {
		for _, m := range w.machines {
			if m.disk == nil || m.disk.state == nil || m.disk.state.Group != group {
				continue
			}
			w.after(w.between(0, operatorsEvery), func() { m.recover(group) })
		}
	}
	for _, m := range w.machines {
		if m.strange(w.needs(m)) {
			w.note("%s is told to empty its directory", m.name)
			m.loseDisk()
		}
	}
	w.after(w.between(operatorsEvery, 2*operatorsEvery), w.operators)
}

// needs reports whether the replica that runs on the machine, or the vote of a removed one, may
// still be needed. A removed one is not needed if the group has gone on without it.
func (w *fleet) needs(m *host) bool {
	runs := m.proc != nil && m.proc.replica != nil
	if m.disk == nil || !m.needed() {
		return runs
	}
	l, s := w.leader(), m.disk.state
	if l == nil || l.Group != s.Group {
		return true
	}
	c := l.Configuration()
	return c.Index <= s.At || slices.Contains(c.Voters, s.Lingers) || slices.Contains(c.Outgoing, s.Lingers)
}
