package sim

import (
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// runs returns how many runs a test has. At a merge scripts/sim runs the same seeds, and more.
func runs(n uint64) uint64 {
	if testing.Short() {
		n /= 5
	}
	return max(n/slowly, 1)
}

// TestSeeds executes MORTISE_SEEDS runs of ten virtual minutes each, beginning with seed
// MORTISE_SEED.
func TestSeeds(t *testing.T) {
	c := Campaign{Seed: func(seed uint64) { cryptotest.SetGlobalRandom(t, seed) }, Say: t.Logf,
		Package: "internal/lab/sim"}
	if err := c.FromEnvironment(runs(10)); err != nil {
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
	rare := min(s.Shared, s.Permits, s.Several, s.Nested, s.Behind, s.Crowded, s.Deadlocks, s.SearchedOn, s.Full,
		s.Forced, s.Overdue, s.Wanted, s.Delayed, s.Detached, s.Resumed, s.Downgraded, s.Upgraded, s.Passes,
		s.Recalled, s.Yielded, s.InUse, s.StaysLost, s.NotForced, s.Paths, s.Mixed, s.Entered, s.Jobs,
		s.Opened, s.Closed, s.AskedLate, s.AnsweredLate, s.HungSnapshots, s.ForcedLate)
	if rare == 0 && (total.Runs >= 20 || total.Runs >= 10 && c.First == 1 && c.Step == 1) {
		t.Errorf("a kind of lock, or of meeting, did not occur: %+v", s)
	}
	if rare := min(s.SharedStays, s.Moved, s.UsedUp, s.Aged, s.Referred, s.RecallsLate, s.RecallsLost, s.Crossed,
		s.Deaf, s.Died, s.Unopened, s.GivenUp, s.Superseded, s.StrayClaims); rare == 0 && total.Runs >= 100 {
		t.Errorf("a rare fault did not occur: %+v", s)
	}
	t.Logf("%d seeds; %s; %+v", total.Runs, total.Wait(), s)
}

// TestBirths executes MORTISE_BIRTHS foundings, beginning with number MORTISE_SEED.
func TestBirths(t *testing.T) {
	c := Campaign{Foundings: true, Seed: func(seed uint64) { cryptotest.SetGlobalRandom(t, seed) }, Say: t.Logf,
		Package: "internal/lab/sim"}
	if err := c.FromEnvironment(runs(100)); err != nil {
		t.Fatal(err)
	}
	total, err := c.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d births; the longest wait for one group after healing: %v; %+v", total.Runs,
		total.Settled.Round(time.Millisecond), total.Stats)
}

// TestDoubts gives most calls a grace, and causes faults often.
func TestDoubts(t *testing.T) {
	var all Stats
	seeds := 12 / slowly
	if testing.Short() {
		seeds = 4
	}
	for seed := range uint64(max(2, seeds)) {
		cfg := Draw(200 + seed)
		cfg.Doubts, cfg.Virtual, cfg.Quiet = 0.8, 3*time.Minute, false
		cfg.TTL, cfg.Grace = time.Second, min(cfg.Grace, time.Second)
		cfg.Callers, cfg.Think, cfg.Long = 4, 500*time.Millisecond, 0.5
		cfg.Trouble.Every = 2 * time.Second
		cryptotest.SetGlobalRandom(t, seed)
		r := Run(cfg)
		if r.Fault != "" {
			t.Fatalf("%v\n%s", &r.Config, r.Fault)
		}
		all.Add(r.Stats)
	}
	if all.Regained == 0 || all.InDoubt == all.Regained {
		t.Errorf("%d holds were in doubt, %d of them good again", all.InDoubt, all.Regained)
	}
	t.Logf("%d in doubt, %d good again, %d granted, %d released", all.InDoubt, all.Regained, all.Granted, all.Released)
}

// TestSessionsOfPrograms lets programs open and close sessions during many faults.
func TestSessionsOfPrograms(t *testing.T) {
	var all Stats
	for seed := range uint64(max(2, 4/slowly)) {
		cfg := Draw(300 + seed)
		cfg.Own, cfg.Heal, cfg.Virtual, cfg.TTL, cfg.Grace = 2, true, 90*time.Second, time.Second, min(cfg.Grace, time.Second)
		cfg.Callers, cfg.Think, cfg.Trouble.Every = 1, 500*time.Millisecond, 5*time.Second
		cryptotest.SetGlobalRandom(t, seed)
		r := Run(cfg)
		if r.Fault != "" {
			t.Fatalf("%v\n%s", &r.Config, r.Fault)
		}
		all.Add(r.Stats)
	}
	if all.Closed == 0 || all.Opened <= all.Closed || all.Unopened == 0 {
		t.Errorf("%d sessions were opened, %d closed, for %d there was no room", all.Opened, all.Closed, all.Unopened)
	}
	t.Logf("%d sessions opened, %d closed, no room for %d, %d calls granted, %d lost", all.Opened, all.Closed,
		all.Unopened, all.Granted, all.Lost)
}

// TestJobs lets 64 callers work under three nested limits, while faults happen. None may be refused
// as a deadlock (see callWatch.refused), and after healing all must be served.
func TestJobs(t *testing.T) {
	var all Stats
	for seed := range uint64(slow.Sized(1, max(2, 4/slowly))) {
		cryptotest.SetGlobalRandom(t, seed)
		r := Run(DrawJobs(seed))
		if r.Fault != "" {
			t.Fatalf("%v\n%s", &r.Config, r.Fault)
		}
		if r.Stats.Jobs == 0 {
			t.Errorf("no job began: %+v", r.Stats)
		}
		all.Add(r.Stats)
	}
	if all.Deadlocks > 0 {
		t.Errorf("%d deadlocks", all.Deadlocks)
	}
	t.Logf("%d jobs, %d granted, %d cancelled, %d lost", all.Jobs, all.Granted, all.Cancelled, all.Lost)
}

// All tests of this package rely on this: two runs of one seed are equal.
func TestOneSeedIsOneRun(t *testing.T) {
	for _, seed := range []uint64{5, 1, 2}[:slow.Sized(1, max(2, 3/slowly))] { // seed 5 has an insider
		var hashes [2]uint64
		for i := range hashes {
			cfg := Draw(seed)
			cfg.Virtual, cfg.Verbose = 2*time.Minute, i == 1 // Verbose must not change the run
			cryptotest.SetGlobalRandom(t, seed)
			hashes[i] = Run(cfg).Hash
		}
		if hashes[0] != hashes[1] {
			t.Errorf("seed %d gives %x, then %x", seed, hashes[0], hashes[1])
		}
	}
}
