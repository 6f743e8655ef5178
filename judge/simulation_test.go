package judge_test

import (
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/sim"
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
	t.Logf("%d runs, none of them wrong; the longest wait after healing: %v; %+v", total.Runs,
		total.Settled.Round(time.Millisecond), total.Stats)
}

func TestSeeds(t *testing.T)  { simulate(t, false, 2) }
func TestBirths(t *testing.T) { simulate(t, true, 20) }
