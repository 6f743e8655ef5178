package founding

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	seedsFlag = flag.Int("birth.seeds", 0, "how many seeds to simulate; zero means a number that takes seconds")
	seedFlag  = flag.Uint64("birth.seed", 0, "simulate only this seed, and print what happens")
)

const simTTL = 2 * time.Second

func fleet(w func(int) int) []Settings {
	n := 1 + w(5)
	base := Settings{Voters: []int{1, 3, 5}[w(3)], SessionTTL: simTTL, Grace: []time.Duration{0, simTTL}[w(2)]}
	if w(2) == 0 {
		base.Replicas = n
	} else {
		for i := range 1 + w(min(n, 3)) {
			base.Founders = append(base.Founders, fmt.Sprintf("n%d", i))
		}
	}
	all := make([]Settings, n)
	for i := range all {
		all[i] = base
	}
	return all
}

// There must never be two groups that could both have a leader, and in the end all instances are
// members of one group.
func TestSimulation(t *testing.T) {
	if *seedFlag != 0 {
		simulate(t, *seedFlag, "", true)
		return
	}
	seeds := *seedsFlag
	if seeds == 0 {
		seeds = 1500
	}
	if testing.Short() || underRace {
		seeds = 200
	}
	births := 0
	for seed := range uint64(seeds) {
		w := simulate(t, seed+1, "", false)
		births += len(w.order)
	}
	t.Logf("%d seeds, %d births", seeds, births)
}

func simulate(t *testing.T, seed uint64, plant string, trace bool) *world {
	w := troubled(seed, plant, trace)
	healed := heal(w)
	if plant != "" {
		return w
	}
	if len(w.faults) > 0 || !healed {
		t.Fatalf("seed %d (go test -run TestSimulation -birth.seed=%d): %v settled=%v\n%s%s",
			seed, seed, w.faults, healed, strings.Join(w.log, "\n"), w.describe())
	}
	if trace {
		t.Logf("\n%s\n%s", strings.Join(w.log, "\n"), w.describe())
	}
	return w
}

func troubled(seed uint64, plant string, trace bool) *world {
	pick := newWorld(seed * 31)
	w := newWorld(seed, fleet(pick.rng.IntN)...)
	w.plant, w.trace, w.calm = plant, trace, false
	slack := w.slots[0].settings.slack()
	for _, s := range w.slots {
		s.skew = time.Duration(w.rng.Int64N(int64(slack))) - slack/2
		if w.rng.IntN(4) > 0 {
			w.after(time.Duration(w.rng.Int64N(int64(time.Second))), s.start)
		}
	}
	w.delay = []time.Duration{2 * time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond}[w.rng.IntN(3)]
	w.loss = []float64{0, 0, 0.05, 0.3}[w.rng.IntN(4)]
	w.dials = []time.Duration{0, time.Second, 5 * time.Second}[w.rng.IntN(3)]
	w.hushed = w.rng.IntN(2) == 0
	w.named = []naming{nameFounders, nameFounders, nameAll, nameOthers, nameSeed}[w.rng.IntN(5)]
	if w.rng.IntN(6) == 0 {
		w.extraJoin = []string{"10.0.9.9:1"}
		w.silent["10.0.9.9:1"] = true
	}
	if w.rng.IntN(6) == 0 {
		w.slots[w.rng.IntN(len(w.slots))].settings.SessionTTL = 3 * time.Second
	}
	if found := w.slots[0].settings; w.rng.IntN(6) == 0 && max(found.Replicas, len(found.Founders)) > 1 {
		// the clock of an instance that founds alone is compared with no other clock
		w.slots[w.rng.IntN(len(w.slots))].skew += 3 * slack
	}
	for range w.rng.IntN(12) {
		w.run(time.Duration(w.rng.Int64N(int64(3*time.Second))), nil)
		w.trouble()
	}
	return w
}

func (w *world) trouble() {
	s := w.slots[w.rng.IntN(len(w.slots))]
	switch w.rng.IntN(7) {
	case 6:
		w.splitAll()
	case 0:
		if s.core != nil {
			s.crash()
		}
	case 1, 2:
		if s.core != nil {
			s.crash()
		}
		if w.rng.IntN(2) == 0 {
			s.move()
		}
		s.start()
	case 3: // partition, in both directions or one
		for _, a := range w.slots {
			for _, b := range w.slots {
				if a.id%2 != b.id%2 && (w.rng.IntN(3) > 0) {
					w.cut[[2]int{a.id, b.id}] = true
				}
			}
		}
		w.note("cut")
	case 4:
		clear(w.cut)
		w.note("cut healed")
	case 5:
		if s.core == nil {
			s.start()
		}
	}
}

// move gives the slot a new address. Its name resolves to the old address for a while.
func (s *slot) move() {
	addr := ""
	taken := func(o *slot) bool { return o.addr == addr }
	// the new address may be in use, because slots may have swapped their addresses
	for addr == "" || slices.ContainsFunc(s.w.slots, taken) {
		addr = fmt.Sprintf("10.0.%d.%d:1", 1+s.w.rng.IntN(200), s.id)
	}
	s.addr = addr
	s.w.after(time.Duration(s.w.rng.Int64N(int64(2*time.Second))), func() { s.dns = s.addr })
}

func heal(w *world) bool {
	w.note("healed")
	clear(w.cut)
	w.loss, w.delay, w.calm, w.dials = 0, 2*time.Millisecond, true, 0
	if len(w.slots[0].settings.Founders) <= 1 {
		w.extraJoin = nil // its silent address would block founding
	}
	for _, s := range w.slots {
		if slack := s.settings.slack(); s.skew > slack/2 {
			s.skew = 0
		}
		if s.settings.SessionTTL != simTTL { // takes a restart
			s.settings.SessionTTL = simTTL
			if s.core != nil {
				s.crash()
			}
		}
	}
	for _, s := range w.slots {
		if s.core == nil {
			s.start()
		}
	}
	since := time.Duration(-1)
	limit := silentOver + 90*time.Second // long enough for replacements at new addresses
	if len(w.slots[0].settings.Founders) > 0 {
		// An instance without gossip learns the voters by an inquiry, or waits until another
		// instance finds it.
		limit = 30 * inquireEvery // the instance may choose a silent address many times
		for _, s := range w.slots {
			s.dns = s.addr
		}
	}
	return w.run(limit, func() bool {
		if !w.settled() {
			since = -1
			return false
		}
		if since < 0 {
			since = w.now
		}
		return w.now-since > 3*time.Second
	})
}
