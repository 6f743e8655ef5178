//go:build linux

package proctest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// parts lists the ways to separate n instances, by the sizes of the parts.
var parts = [...]struct {
	n     int
	sizes [][]int
}{
	{2, [][]int{{1, 1}}},
	{3, [][]int{{2, 1}, {1, 1, 1}}},
	{5, [][]int{{4, 1}, {3, 2}, {3, 1, 1}, {2, 2, 1}, {2, 1, 1, 1}, {1, 1, 1, 1, 1}}},
}

// The founders are separated at the start and connected a few seconds later.
func TestBirths(t *testing.T) {
	for _, p := range parts {
		for _, sizes := range p.sizes {
			name := strings.ReplaceAll(strings.Trim(fmt.Sprint(sizes), "[]"), " ", "+")
			t.Run("replicas/"+name, func(t *testing.T) {
				in := whole
				if name == "2+1" {
					in = always
				}
				begin(t, in)
				w := newWorld(t, settings{replicas: p.n})
				w.births(p.n, sizes, true)
			})
			t.Run("founders/"+name, func(t *testing.T) {
				begin(t, whole)
				founders := []string{"a", "b", "c"}
				w := newWorld(t, settings{founders: founders[:min(p.n, 3)]})
				w.births(p.n, sizes, sizes[0] < len(w.founders))
			})
		}
	}
}

// births starts n instances in parts that do not reach each other, and connects the parts a few
// seconds later. If apart is true, no part contains all founders, so that no instance may be
// granted a lock before the parts are connected.
func (w *world) births(n int, sizes []int, apart bool) {
	w.t.Helper()
	machines := w.machinesFor(n)
	rest := machines
	for _, size := range sizes {
		w.net.cut(rest[:size], rest[size:])
		rest = rest[size:]
	}
	fleet := w.startOn(machines...)
	time.Sleep(3 * time.Second)
	if apart {
		together(fleet, func(in *instance) { w.notGranted(in, 3*time.Second) })
	}
	w.net.heal()
	w.waitReady(slack*readyTime, fleet...)
	w.verdict(slack * readyTime)
}

// TestBirthIsCut separates three instances during their founding, each time a little later.
func TestBirthIsCut(t *testing.T) {
	begin(t, whole)
	for after := 50 * time.Millisecond; after <= time.Second; after += 100 * time.Millisecond {
		t.Run(after.String(), func(t *testing.T) {
			begin(t, whole)
			w := newWorld(t, settings{replicas: 3})
			fleet := w.startAll(3)
			time.Sleep(after)
			w.net.cut(machinesOf(fleet[:1]), machinesOf(fleet[1:]))
			w.lose(fleet...)
			time.Sleep(5 * time.Second)
			w.net.heal()
			w.waitReady(slack*readyTime, fleet...)
			w.verdict(slack * readyTime)
		})
	}
}
