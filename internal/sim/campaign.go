package sim

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
)

// Campaign runs many seeds, one after the other. It is for tests, which alone can seed raft's random source, and that one is the
// process's: campaigns on several cores are several processes, each with its Step.
type Campaign struct {
	First, Step uint64        // seeds First, First+Step, …
	Least       uint64        // at least so many in all, those before a resumption among them
	Time        time.Duration // begin new ones for that long, whatever Least says
	State       string        // a file that says which seed is next, so that a campaign can go on where it was stopped; "": none
	Births      bool          // births instead of runs

	Seed    func(seed uint64)           // seeds crypto/rand
	Judge   func([]history.Event) error // a second judge of each history; nil: none
	Package string                      // the directory of the test, from the root of the repository
	Say     func(format string, args ...any)
}

// Total is what came of a campaign.
type Total struct {
	Runs    int
	Settled time.Duration // the longest wait after healing
	Stats   Stats
}

// Run runs the campaign. An error tells the seed, the command that repeats it, the last events and the broken rule.
func (c *Campaign) Run() (Total, error) {
	var total Total
	seed, begun, step := c.resume(), time.Now(), max(c.Step, 1)
	for (seed-c.First)/step < c.Least || time.Since(begun) < c.Time {
		r, err := c.one(seed)
		total.Runs++
		total.Settled = max(total.Settled, r.Settled)
		total.Stats.Add(r.Stats)
		if err != nil {
			return total, err
		}
		seed += step
		if err := c.note(seed); err != nil {
			return total, err
		}
		if total.Runs%50 == 0 {
			c.Say("%d done in %v, next is seed %d", total.Runs, time.Since(begun).Round(time.Second), seed)
		}
	}
	return total, nil
}

// lastEvents is how many of the last events a failure shows.
const lastEvents = 60

// one runs one seed; if it fails it is run again with its transcript, and that must fail alike.
func (c *Campaign) one(seed uint64) (*Report, error) {
	r := c.run(seed, false)
	if r.Fault == "" {
		return r, nil
	}
	again := c.run(seed, true)
	last := again.Transcript[max(0, len(again.Transcript)-lastEvents):]
	text := strings.Join(last, "\n") + "\n" + again.Fault
	if again.Hash != r.Hash || again.Fault != r.Fault {
		text += fmt.Sprintf("\nthe seed is not repeatable: hash %x, then %x, where the first run found: %s", r.Hash, again.Hash, r.Fault)
	}
	return again, fmt.Errorf("%v\n%s\nrepeat it: %s", again.Config.String(), text, c.command(seed))
}

func (c *Campaign) run(seed uint64, verbose bool) *Report {
	cfg := Draw(seed)
	if c.Births {
		cfg = DrawBirth(seed)
	}
	cfg.Verbose = verbose
	c.Seed(seed)
	var r *Report
	if c.Births {
		r = RunBirth(seed, cfg)
	} else {
		r = Run(cfg)
	}
	if r.Fault == "" && c.Judge != nil {
		if err := c.Judge(r.History); err != nil {
			r.Fault = err.Error()
		}
	}
	return r
}

func (c *Campaign) command(seed uint64) string {
	if c.Births {
		return fmt.Sprintf("MORTISE_SEED=%d MORTISE_BIRTHS=1 go test -C %s -run TestBirths .", seed, c.Package)
	}
	return fmt.Sprintf("MORTISE_SEED=%d MORTISE_SEEDS=1 go test -C %s -run TestSeeds .", seed, c.Package)
}

// resume returns the seed to begin with.
func (c *Campaign) resume() uint64 {
	if c.State != "" {
		if b, err := os.ReadFile(c.State); err == nil {
			if next, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64); err == nil {
				return next
			}
		}
	}
	return c.First
}

func (c *Campaign) note(next uint64) error {
	if c.State == "" {
		return nil
	}
	return os.WriteFile(c.State, []byte(strconv.FormatUint(next, 10)+"\n"), 0o644)
}

// FromEnvironment fills in what MORTISE_SEED (the first), MORTISE_SEEDS, MORTISE_BIRTHS or MORTISE_LEAST (how many), MORTISE_STEP,
// MORTISE_TIME and MORTISE_STATE say, with the given number of runs where nothing is said.
func (c *Campaign) FromEnvironment(runs uint64) {
	number := func(name string, or uint64) uint64 {
		if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
			return n
		}
		return or
	}
	c.First, c.Step, c.State = number("MORTISE_SEED", 1), number("MORTISE_STEP", 1), os.Getenv("MORTISE_STATE")
	if c.Births {
		c.Least = number("MORTISE_BIRTHS", number("MORTISE_LEAST", runs))
	} else {
		c.Least = number("MORTISE_SEEDS", number("MORTISE_LEAST", runs))
	}
	if d, err := time.ParseDuration(os.Getenv("MORTISE_TIME")); err == nil {
		c.Time = d
	}
}
