//go:build linux

package proctest

import (
	"fmt"
	"slices"
	"testing"
)

// TestRolling deploys a fleet again, and replaces each instance when the previous one is ready.
func TestRolling(t *testing.T) {
	for _, n := range []int{3, 5, 9} {
		for _, how := range []string{byLeave, byKill} {
			for _, surge := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d/%s/surge=%v", n, how, surge), func(t *testing.T) {
					in := whole
					if n == 3 && surge == (how == byKill) {
						in = always
					}
					begin(t, in)
					w := newWorld(t, settings{replicas: n})
					fleet := w.startAll(n)
					w.waitReady(slack*readyTime, fleet...)
					w.roll(fleet, how, surge)
					w.verdict(slack * readyTime)
				})
			}
		}
	}
}

// roll replaces every instance by a new process. With surge the new process starts first, on a new
// machine and under a new name, as in a Deployment. Without surge the old process ends first, as in
// a StatefulSet.
func (w *world) roll(fleet []*instance, how string, surge bool) {
	w.t.Helper()
	for i, old := range fleet {
		name, m := old.name, old.machine
		if surge {
			name, m = fmt.Sprintf("%s%d", nameOf(i), len(w.lives)), w.machine()
			w.list(slices.Concat(w.listed, []*machine{m})...)
			fleet[i] = w.start(name, m)
			w.waitReady(slack*readyTime, fleet[i])
			w.depart(how, old)
			w.unlist(old.machine)
			continue
		}
		w.depart(how, old)
		fleet[i] = w.start(name, m)
		w.waitReady(slack*readyTime, fleet[i])
	}
}

func TestTwentyRollingRestarts(t *testing.T) {
	begin(t, whole)
	w := newWorld(t, settings{replicas: 3})
	fleet := w.startAll(3)
	w.waitReady(slack*readyTime, fleet...)
	for i := range 20 {
		w.roll(fleet, []string{byLeave, byKill}[i%2], false)
	}
	w.verdict(slack * readyTime)
}
