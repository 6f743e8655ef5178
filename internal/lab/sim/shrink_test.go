package sim

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
)

// judged runs a campaign's seed with a judge of its own, which the simulation itself satisfies.
func judged(t *testing.T, cfg Config, judge func(*Report) error) *Report {
	cryptotest.SetGlobalRandom(t, cfg.Seed)
	r := Run(cfg)
	if r.Fault != "" {
		t.Fatalf("%v\n%s", &r.Config, r.Fault)
	}
	if err := judge(r); err != nil {
		r.Fault = err.Error()
	}
	return r
}

// TestShrink has a judge that objects to what only faults can cause. The failure must shrink to a
// few faults, each of which it needs.
func TestShrink(t *testing.T) {
	lost := func(r *Report) error {
		for _, e := range r.History {
			if e.Kind == history.Lost {
				return errors.New("planted: a lock was lost")
			}
		}
		return nil
	}
	cancelled := func(r *Report) error {
		if r.Stats.Expired > 1 && r.Stats.Cancelled > 0 {
			return errors.New("planted: two ended leases, and a cancelled call")
		}
		return nil
	}
	for _, test := range []struct {
		name  string
		from  uint64 // the first seed
		judge func(*Report) error
		most  int
	}{{"lost", 10, lost, 4}, {"two things", 4, cancelled, 6}} {
		t.Run(test.name, func(t *testing.T) {
			if testing.Short() && test.name == "lost" {
				t.Skip("two things are harder to shrink")
			}
			run := func(cfg Config) *Report { return judged(t, cfg, test.judge) }
			var failed *Report
			for seed := test.from; failed == nil || failed.Fault == "" || len(failed.Strikes) < 4; seed++ {
				if seed > test.from+20 {
					t.Fatalf("no seed fails; the last one: %+v", failed.Stats)
				}
				cfg := Draw(seed)
				cfg.Virtual, cfg.Heal, cfg.Quiet, cfg.Trouble.Every = time.Minute, false, false, 2*time.Second
				for _, k := range kinds() {
					k.without(&cfg)
				}
				cfg.Cancel, cfg.Long, cfg.Trouble.Drop = 0.1, 0.4, 0.02
				failed = run(cfg)
			}
			s := Shrink(failed, 600, run)
			t.Logf("%d runs, %d strikes, left: %s", s.Runs, len(failed.Strikes), strings.Join(s.Faults, "\n"))
			if s.Fault == "" || !s.Minimal || len(s.Faults) == 0 || len(s.Faults) > test.most {
				t.Fatalf("fault %q, minimal: %v, %d parts", s.Fault, s.Minimal, len(s.Faults))
			}
			if again := run(s.Config); again.Hash != s.Hash || again.Fault != s.Fault {
				t.Fatalf("the shrunk run is not repeatable: %x, then %x", s.Hash, again.Hash)
			}
			page := s.Page("a planted failure", "go test", s.Minimal, s.Faults, nil)
			var html bytes.Buffer
			if err := page.Write(&html); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"planted: ", " the run passes</h2>", `class="held"`, `class="runs"`,
				`class="leads"`, "key-0"} {
				if !strings.Contains(html.String(), want) {
					t.Errorf("the page lacks %q", want)
				}
			}
		})
	}
}

// TestReplay: a run with all strikes of an earlier run is that run, and a strike that is left out
// leaves the times of the others as they were.
func TestReplay(t *testing.T) {
	for _, seed := range []uint64{3, 9} {
		cfg := Draw(seed)
		cfg.Virtual, cfg.Quiet, cfg.Trouble.Every = 20*time.Second, false, 2*time.Second
		none := func(*Report) error { return nil }
		r := judged(t, cfg, none)
		cfg.Replay = &Replay{strikes: r.Strikes}
		if same := judged(t, cfg, none); same.Hash != r.Hash {
			t.Errorf("seed %d: a replay gives %x instead of %x", seed, same.Hash, r.Hash)
		}
		if len(r.Strikes) == 0 {
			t.Fatalf("seed %d has no fault", seed)
		}
		cfg.Replay = &Replay{strikes: r.Strikes, off: map[int]bool{0: true}}
		other := judged(t, cfg, none)
		if other.Hash == r.Hash {
			t.Errorf("seed %d: without its first fault the run is the same", seed)
		}
		times := func(all []Strike) (at []time.Duration) {
			for _, s := range all {
				at = append(at, s.At)
			}
			return at
		}
		if a, b := times(r.Strikes), times(other.Strikes); !slices.Equal(a, b) {
			t.Errorf("seed %d: the faults happen at %v, and without the first one at %v", seed, a, b)
		}
	}
}
