package judge_test

import (
	"testing"
	"testing/cryptotest"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/sim"
	"github.com/mortise-lock/mortise/judge"
)

// simulate runs the campaign that environment variables define (see sim.Campaign.FromEnvironment).
// The second judge also judges each run.
func simulate(t *testing.T, foundings bool, runs uint64) {
	c := sim.Campaign{
		Foundings: foundings,
		Seed:      func(seed uint64) { cryptotest.SetGlobalRandom(t, seed) },
		Judge:     func(events []history.Event) error { return judge.Porcupine(events, judge.Options{}) },
		Say:       t.Logf, Package: "judge",
	}
	if err := c.FromEnvironment(runs); err != nil {
		t.Fatal(err)
	}
	total, err := c.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d runs, none of them wrong; %s; %+v", total.Runs, total.Wait(), total.Stats)
}

// TestJobs has both judges judge 64 callers that work under three nested limits.
func TestJobs(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs only every night; at a merge the first judge judges such runs")
	}
	cryptotest.SetGlobalRandom(t, 1)
	r := sim.Run(sim.DrawJobs(1)) // the first judge is a part of the run
	if r.Fault != "" || r.Stats.Jobs == 0 {
		t.Fatalf("%d jobs; %s", r.Stats.Jobs, r.Fault)
	}
	if err := judge.Porcupine(r.History, judge.Options{}); err != nil {
		t.Fatal(err)
	}
}

func TestSeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs only every night; at a merge the first judge judges such runs")
	}
	simulate(t, false, 2)
}

func TestBirths(t *testing.T) { simulate(t, true, 20) }
