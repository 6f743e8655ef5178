package sim

import "time"

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
		if m.strange() {
			w.note("%s is told to empty its directory", m.name)
			m.loseDisk()
		}
	}
	w.after(w.between(operatorsEvery, 2*operatorsEvery), w.operators)
}
