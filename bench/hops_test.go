package main

import (
	"testing"
	"time"

	"golang.org/x/exp/trace"
)

// TestHops follows a lock back from its return: through a goroutine that woke the caller, and over
// the network to the goroutine of another member that wrote last before.
func TestHops(t *testing.T) {
	caller := &routine{id: 1, member: noMember, wakes: []wake{{5, 2}, {90, 2}, {150, 2}}}
	client := &routine{id: 2, member: 0, name: "client", wakes: []wake{{20, 1}, {80, trace.NoGoroutine}}}
	idle := &routine{id: 3, member: 0, name: "idle"}
	leader := &routine{id: 4, member: 1, name: "leader", wakes: []wake{{40, trace.NoGoroutine}}}
	r := &recording{
		routines: map[trace.GoID]*routine{1: caller, 2: client, 3: idle, 4: leader},
		sends:    []send{{30, client}, {60, leader}, {70, idle}, {85, leader}},
		caller:   1,
		locks:    []stretch{{10, 100}},
	}
	got := r.ways([]string{"asks", "leads"})
	want := []hop{
		{"caller", "Lock and Unlock", "ran", 10},
		{"asks", "client", "a goroutine", 20},
		{"leads", "leader", "the network", 40},
		{"asks", "client", "the network", 10},
		{"caller", "Lock and Unlock", "a goroutine", 10},
	}
	if len(got) != 1 || got[0].share != 1 || len(got[0].hops) != len(want) {
		t.Fatalf("%+v", got)
	}
	sum := time.Duration(0)
	for i, h := range got[0].hops {
		if h != want[i] {
			t.Errorf("hop %d: %+v, want %+v", i, h, want[i])
		}
		sum += h.took
	}
	if sum != 90 {
		t.Errorf("the hops took %d in all, the lock 90", sum)
	}
}
