//go:build linux

package proctest

import (
	"testing"
)

// TestScaling scales a group from one founder to three, to five and back, by the steps of
// docs/OPERATION.md. No remaining instance may lose a lock.
func TestScaling(t *testing.T) {
	for _, durable := range []bool{false, true} {
		t.Run(map[bool]string{false: "memory", true: "dir"}[durable], func(t *testing.T) {
			in := whole
			if durable {
				in = always
			}
			begin(t, in)
			w := newWorld(t, settings{durable: durable})
			w.found(1)
			fleet := w.startAll(1)
			w.waitReady(slack*readyTime, fleet...)
			fleet = w.grow(fleet, 3)
			fleet = w.grow(fleet, 5)
			fleet = w.shrink(fleet, 3)
			w.shrink(fleet, 1)
			w.verdict(slack * readyTime)
		})
	}
}

// The method found sets the number of founders for all instances that start after the call.
func (w *world) found(founders int) {
	w.founders = nil
	for i := range founders {
		w.founders = append(w.founders, nameOf(i))
	}
	w.voters = max(3, founders)
}

func (w *world) grow(fleet []*instance, founders int) []*instance {
	w.t.Helper()
	w.found(founders)
	old := len(fleet)
	for i, m := range w.machinesFor(founders - old) {
		in := w.start(nameOf(old+i), m)
		w.waitReady(slack*readyTime, in)
		fleet = append(fleet, in)
	}
	w.renew(fleet, old)
	w.waitVoters(slack*readyTime, fleet...)
	return fleet
}

func (w *world) shrink(fleet []*instance, founders int) []*instance {
	w.t.Helper()
	w.found(founders)
	w.renew(fleet, founders)
	for i := len(fleet) - 1; i >= founders; i-- {
		w.leave(fleet[i])
		w.unlist(fleet[i].machine)
	}
	w.waitVoters(slack*readyTime, fleet[:founders]...)
	return fleet[:founders]
}

// renew restarts the instances in fleet[:first], one after the other, in reverse order.
func (w *world) renew(fleet []*instance, first int) {
	w.t.Helper()
	for i := first - 1; i >= 0; i-- {
		w.leave(fleet[i])
		fleet[i] = w.start(nameOf(i), fleet[i].machine)
		w.waitReady(slack*readyTime, fleet[i])
	}
}
