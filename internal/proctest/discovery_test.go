//go:build linux

package proctest

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// TestNamesOfOneself has the name server tell each instance only its own address, as a service does
// that lists ready instances: no instance founds a group alone, and all found one when they are
// told of each other.
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

// TestNamesOfNoneUntilReady has the name server list an instance only when it is ready. No
// instance is ready, so no group is founded: the documentation says to list them before. Once there
// is a group, newcomers that are not listed themselves join it.
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

// TestStaleNames has the name server list machines that are gone, beside those that are there.
func TestStaleNames(t *testing.T) {
	t.Run("no process listens there", func(t *testing.T) {
		begin(t, whole)
		w := newWorld(t, settings{replicas: 3})
		stale, machines := w.machinesFor(2), w.machinesFor(3)
		fleet := w.startOn(machines...)
		w.waitReady(slack*readyTime, fleet...) // a refusal is an answer
		w.list(stale...)
		w.roll(fleet[:1], byLeave, false)
		w.waitAllReady(slack * readyTime)
		w.verdict(slack * readyTime)
	})
	// A machine that does not answer may be one of the founders, behind a cut: no group is founded
	// until an operator declares that it is gone.
	t.Run("silence", func(t *testing.T) {
		begin(t, whole)
		w := newWorld(t, settings{replicas: 3})
		stale, machines := w.machinesFor(1), w.machinesFor(3)
		w.net.cut(stale, machines)
		fleet := w.startOn(machines...)
		together(fleet, func(in *instance) { w.notGranted(in, 5*time.Second) })
		w.unlist(stale[0])
		w.waitReady(slack*readyTime, fleet...)
		w.list(slices.Concat(stale, machines)...) // it does not matter any more
		newcomer := w.machine()
		w.net.cut(stale, []*machine{newcomer})
		w.waitReady(slack*readyTime, w.start("d", newcomer))
		w.verdict(slack * readyTime)
	})
}
