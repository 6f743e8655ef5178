//go:build linux

package proctest

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// In TestNamesOfOneself, the name server returns only the address of the instance that asks. No
// instance may found a group alone. All instances must found a group together when they get all
// addresses.
func TestNamesOfOneself(t *testing.T) {
	begin(t, always)
	w := newWorld(t, settings{replicas: 3})
	machines := w.machinesFor(3)
	w.names.say(func(asker netip.Addr) []netip.Addr { return []netip.Addr{asker} })
	fleet := w.startOn(machines...)
	together(fleet, func(in *instance) { w.notGranted(in, 5*time.Second) })
	w.list(machines...)
	w.waitReady(slack*readyTime, fleet...)
	w.verdict(slack * readyTime)
}

// TestNamesOfNoneUntilReady imitates a name server that lists only instances that are ready.
// While none is listed, no group is founded, so no instance becomes ready. Once all are listed,
// they form a group. A new instance joins this group although it is not listed.
func TestNamesOfNoneUntilReady(t *testing.T) {
	begin(t, whole)
	w := newWorld(t, settings{replicas: 3})
	machines := w.machinesFor(3)
	w.list()
	fleet := w.startOn(machines...)
	together(fleet, func(in *instance) { w.notGranted(in, 5*time.Second) })
	for _, in := range fleet {
		if waiting := in.status().Waiting; waiting == "" {
			w.t.Errorf("%s waits for others and does not say so", in.life)
		}
	}
	w.list(machines...)
	w.waitReady(slack*readyTime, fleet...)
	w.waitReady(slack*readyTime, w.start("d", w.machine()))
	w.verdict(slack * readyTime)
}

// In TestStaleNames, the name server also lists machines that no longer exist.
func TestStaleNames(t *testing.T) {
	t.Run("no process listens there", func(t *testing.T) {
		begin(t, whole)
		w := newWorld(t, settings{replicas: 3})
		stale, machines := w.machinesFor(2), w.machinesFor(3)
		fleet := w.startOn(machines...)
		w.waitReady(slack*readyTime, fleet...) // a refused connection counts as an answer
		w.list(stale...)
		w.roll(fleet[:1], byLeave, false)
		w.waitAllReady(slack * readyTime)
		w.verdict(slack * readyTime)
	})
	// A machine that does not answer may be a founder that is cut off. No group is founded until an
	// operator declares that the machine is gone.
	t.Run("silence", func(t *testing.T) {
		begin(t, whole)
		w := newWorld(t, settings{replicas: 3})
		stale, machines := w.machinesFor(1), w.machinesFor(3)
		w.net.cut(stale, machines)
		fleet := w.startOn(machines...)
		together(fleet, func(in *instance) { w.notGranted(in, 5*time.Second) })
		w.unlist(stale[0])
		w.waitReady(slack*readyTime, fleet...)
		w.list(slices.Concat(stale, machines)...) // once there is a group, a stale address does no harm
		newcomer := w.machine()
		w.net.cut(stale, []*machine{newcomer})
		w.waitReady(slack*readyTime, w.start("d", newcomer))
		w.verdict(slack * readyTime)
	})
}
