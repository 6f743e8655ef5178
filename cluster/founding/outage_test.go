package founding

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

func (w *world) splitAll() {
	for _, a := range w.slots {
		for _, b := range w.slots {
			if a != b {
				w.cut[[2]int{a.id, b.id}] = true
			}
		}
	}
	w.note("all links cut")
}

// All links of a founded group are cut for a random time and then restored. No process has ended,
// so the group must continue.
func TestOutageTakesNothing(t *testing.T) {
	seeds := slow.Sized[uint64](50, 300)
	for seed := range seeds {
		pick := newWorld(seed*17 + 1)
		n, ttl := []int{3, 5}[pick.rng.IntN(2)], []time.Duration{1, 2, 5, 10}[pick.rng.IntN(4)]*time.Second
		s := Settings{Replicas: n, Voters: n, SessionTTL: ttl, Grace: simTTL}
		if pick.rng.IntN(2) == 0 {
			s.Replicas = 0
			for i := range n {
				s.Founders = append(s.Founders, fmt.Sprintf("n%d", i))
			}
		}
		w := newWorld(seed+1, slices.Repeat([]Settings{s}, n+pick.rng.IntN(2)*len(s.Founders)/3)...)
		w.trace, w.dials = true, 5*time.Second
		for _, s := range w.slots {
			s.start()
		}
		if !w.run(10*time.Second, w.settled) {
			t.Fatalf("seed %d: not one group\n%s", seed, w.describe())
		}
		for range 1 + w.rng.IntN(3) {
			w.splitAll()
			w.run(time.Duration(w.rng.Int64N(int64(30*time.Second))), nil)
			clear(w.cut)
			w.note("healed")
			w.run(time.Duration(w.rng.Int64N(int64(3*time.Second))), nil)
		}
		if !w.run(w.dials+3*time.Second, w.settled) || len(w.order) != 1 || len(w.faults) > 0 {
			t.Fatalf("seed %d: %d groups, %v\n%v\n%s", seed, len(w.order), w.faults, w.log, w.describe())
		}
	}
}

// Whatever has happened to each founder, there must be one group with a leader within the limit.
func TestLossIsRepaired(t *testing.T) {
	for i, how := range []string{"founders", "replicas"} {
		for mix := range ends * ends * ends {
			if testing.Short() && mix%6 != i {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d%d%d", how, mix%ends, mix/ends%ends, mix/ends/ends), func(t *testing.T) {
				repaired(t, how, mix)
			})
		}
	}
}

const ends = 4 // the founder continues, loses its replica, restarts, or restarts at another address

func repaired(t *testing.T, how string, mix int) {
	settings := founders(3, "n0", "n1", "n2")
	if how == "replicas" {
		settings = replicas(3, 3)
	}
	w := startAll(t, settings)
	if !w.run(3*time.Second, w.settled) {
		t.Fatal("not one group")
	}
	w.dials = time.Second
	w.splitAll()
	within := simTTL + reachedFor + 2*time.Second + 5*time.Second
	all := 0
	for _, s := range w.slots {
		switch fate := mix % ends; {
		case fate == 0:
			all++
		case fate == 1:
			raft := s.raft
			s.raft, w.over[s.raft] = 0, true
			s.core.Retired(w.now, raft)
			s.tick()
		default:
			s.crash()
			if fate == 3 {
				s.move()
			}
			if fate == 3 && how == "replicas" {
				within = silentOver + 15*time.Second
			}
			s.start()
		}
		mix /= ends
	}
	w.run(time.Duration(w.rng.Int64N(int64(4*time.Second))), nil)
	clear(w.cut)
	want := 2
	if all >= 2 {
		want = 1
	}
	if !w.run(within, w.settled) || len(w.order) != want {
		t.Fatalf("%d groups within %v, want %d", len(w.order), within, want)
	}
}
