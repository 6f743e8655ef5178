package sim

import (
	"testing"
	"testing/cryptotest"
	"time"
)

// TestSeeds runs MORTISE_SEEDS runs of ten virtual minutes from seed MORTISE_SEED on.
func TestSeeds(t *testing.T) {
	c := Campaign{Seed: func(seed uint64) { cryptotest.SetGlobalRandom(t, seed) }, Say: t.Logf, Package: "internal/sim"}
	if err := c.FromEnvironment(max(1, 6/slowly)); err != nil {
		t.Fatal(err)
	}
	total, err := c.Run()
	if err != nil {
		t.Fatal(err)
	}
	if s := total.Stats; total.Runs >= 4 && (s.Changes == 0 || s.Replaced == 0 || s.Leaves == 0) {
		t.Errorf("no voter was replaced, or none left in good order: the runs do not meet what they are for: %+v", s)
	}
	if s := total.Stats; total.Runs >= 4 && s.Between == 0 {
		t.Errorf("nothing was ever applied while a snapshot was taken: %+v", s)
	}
	s := total.Stats
	rare := min(s.Shared, s.Permits, s.Several, s.Nested, s.Behind, s.Crowded, s.Deadlocks, s.Full, s.Forced,
		s.Overdue, s.Wanted, s.Delayed, s.Detached, s.Resumed)
	if rare == 0 && (total.Runs >= 20 || total.Runs >= 6 && c.First == 1 && c.Step == 1) {
		t.Errorf("a kind of lock, or of meeting, did not occur: %+v", s)
	}
	t.Logf("%d seeds; the longest wait after healing: %v; %+v", total.Runs, total.Settled.Round(time.Millisecond), s)
}

// TestBirths founds a group MORTISE_BIRTHS times, from number MORTISE_SEED on.
func TestBirths(t *testing.T) {
	c := Campaign{Foundings: true, Seed: func(seed uint64) { cryptotest.SetGlobalRandom(t, seed) }, Say: t.Logf,
		Package: "internal/sim"}
	if err := c.FromEnvironment(100 / slowly); err != nil {
		t.Fatal(err)
	}
	total, err := c.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d births; the longest wait for one group after healing: %v; %+v", total.Runs,
		total.Settled.Round(time.Millisecond), total.Stats)
}

// Everything here rests on this.
func TestOneSeedIsOneRun(t *testing.T) {
	for _, seed := range []uint64{1, 5, 2}[:max(2, 3/slowly)] { // one of them has an insider
		var hashes [2]uint64
		for i := range hashes {
			cfg := Draw(seed)
			cfg.Virtual, cfg.Verbose = 2*time.Minute, i == 1 // to observe must change nothing
			cryptotest.SetGlobalRandom(t, seed)
			hashes[i] = Run(cfg).Hash
		}
		if hashes[0] != hashes[1] {
			t.Errorf("seed %d gives %x, then %x", seed, hashes[0], hashes[1])
		}
	}
}
