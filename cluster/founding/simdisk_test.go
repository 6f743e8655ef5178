package founding

import (
	"strings"
	"testing"
	"time"
)

// TestDurableSimulation is TestSimulation with directories. Processes die during saves and return
// at the same, new or swapped addresses. Directories are lost or cannot be written. A raft ID must
// never be used with other data, nothing may be sent before it is stored, and no intact directory
// may give up its group.
func TestDurableSimulation(t *testing.T) {
	if *seedFlag != 0 {
		simulateDurably(t, *seedFlag, true)
		return
	}
	seeds := *seedsFlag
	if seeds == 0 {
		seeds = 1000
	}
	if testing.Short() || underRace {
		seeds = 150
	}
	births := 0
	for seed := range uint64(seeds) {
		births += len(simulateDurably(t, seed+1, false).order)
	}
	t.Logf("%d seeds, %d births", seeds, births)
}

func simulateDurably(t *testing.T, seed uint64, trace bool) *world {
	w := troubledDisks(seed, "", trace)
	healed := healDisks(w)
	if len(w.faults) > 0 || !healed {
		if !trace {
			simulateDurably(t, seed, true)
		}
		t.Fatalf("seed %d (go test -run TestDurableSimulation -birth.seed=%d): %v settled=%v\n%s%s",
			seed, seed, w.faults, healed, strings.Join(w.log, "\n"), w.describe())
	}
	if trace {
		t.Logf("\n%s\n%s", strings.Join(w.log, "\n"), w.describe())
	}
	return w
}

func troubledDisks(seed uint64, plant string, trace bool) *world {
	pick := newWorld(seed * 37)
	w := newWorld(seed, fleet(pick.rng.IntN)...).durably()
	w.plant, w.trace, w.calm = plant, trace, false
	w.brittle = []float64{0, 0.02, 0.1}[w.rng.IntN(3)]
	w.delay = []time.Duration{2 * time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond}[w.rng.IntN(3)]
	w.loss = []float64{0, 0, 0.05, 0.3}[w.rng.IntN(4)]
	lossy := w.rng.IntN(3) == 0
	for _, s := range w.slots {
		w.after(time.Duration(w.rng.Int64N(int64(time.Second))), s.startIfDown)
	}
	for range w.rng.IntN(16) {
		w.run(time.Duration(w.rng.Int64N(int64(3*time.Second))), nil)
		w.troubleDisk(lossy)
	}
	return w
}

func (s *slot) startIfDown() {
	if s.core == nil {
		s.start()
	}
}

func (s *slot) stop() {
	if s.core != nil {
		s.crash()
	}
}

func (w *world) troubleDisk(lossy bool) {
	s, o := w.slots[w.rng.IntN(len(w.slots))], w.slots[w.rng.IntN(len(w.slots))]
	soon := func(s *slot) { w.after(time.Duration(w.rng.Int64N(int64(4*time.Second))), s.startIfDown) }
	switch w.rng.IntN(8) {
	case 0, 1:
		w.trouble()
	case 2:
		w.note("power failure")
		for _, s := range w.slots {
			s.stop()
			if w.rng.IntN(3) == 0 {
				s.move()
			}
			soon(s)
		}
	case 3:
		if s != o {
			s.stop()
			o.stop()
			w.swap(s, o)
			soon(s)
			soon(o)
		}
	case 4:
		if lossy {
			s.stop()
			s.lose()
			soon(s)
		}
	case 5:
		w.note("the directory of %s cannot be written any more", s.name)
		s.disk.fails = true
	case 6:
		s.stop()
		soon(s)
	case 7: // an operator considers the group lost, correctly or not
		if s.disk.member != 0 && w.rng.IntN(3) == 0 {
			s.recover(s.disk.member)
		}
	}
}

// healDisks ends all faults, lets operators follow the instructions, and waits until all instances
// are members of one group.
func healDisks(w *world) bool {
	w.brittle = 0
	w.run(5*time.Second, nil) // time for all instances to start
	for _, s := range w.slots {
		s.dns, s.disk.fails = s.addr, false
		if s.retired {
			s.stop()
		}
	}
	w.operate()
	if heal(w) {
		return true
	}
	w.note("people empty what is lost")
	w.operate() // again, because a failed founding may have ended since the first call
	return len(w.faults) == 0 && heal(w)
}

// In this test the check mustHaveStored is off. If an answer is sent before its save, the other
// checks must detect it.
func TestTheSimulationSeesAnAnswerBeforeItsSave(t *testing.T) {
	for seed := range uint64(3000) {
		w := troubledDisks(seed+1, "answer before save", false)
		if len(w.faults) > 0 {
			t.Logf("seed %d: %v", seed+1, w.faults)
			return
		}
	}
	t.Error("no seed has shown it")
}

// One of three instances has learned that the group is founded when the power fails. The other two
// return one after the other, each alone for longer than the time of rule 5. If they gave the
// charter up, the first instance would forever keep a group in which it has a third of the votes.
func TestNoInstanceForgetsAGroupThatAnotherKnowsToBeBorn(t *testing.T) {
	w := newWorld(3, replicas(3, 3)...).durably()
	w.trace = true
	for _, s := range w.slots {
		s.start()
	}
	members := func() (n int) {
		for _, s := range w.slots {
			if s.disk.member != 0 {
				n++
			}
		}
		return n
	}
	if !w.run(5*time.Second, func() bool { return members() == 1 }) {
		t.Fatal("not exactly one has learned that the group is born")
	}
	for _, s := range w.slots {
		s.stop()
	}
	for _, s := range w.slots {
		if s.disk.member == 0 {
			s.start()
			w.run(20*time.Second, nil)
			s.stop()
		}
	}
	for _, s := range w.slots {
		s.start()
	}
	if !w.run(20*time.Second, w.settled) || len(w.order) != 1 || len(w.faults) > 0 {
		t.Errorf("%d groups, %v\n%s\n%s", len(w.order), w.faults, strings.Join(w.log, "\n"), w.describe())
	}
}
