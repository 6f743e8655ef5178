//go:build linux

package proctest

import (
	"fmt"
	"slices"
	"testing"
)

// TestRolling deploys a fleet anew, one instance after the other, each when the one before is
// ready.
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

// roll replaces every instance by one that starts anew. With surge the new one comes first, on a
// machine of its own and under a name of its own, and the old one goes when it is ready: a
// Deployment. Without, the old one goes first, and comes back on its machine: a StatefulSet.
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

// TestTwentyRollingRestarts is the figure that users ask for: what a deploy costs them.
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
