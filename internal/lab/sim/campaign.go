package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
)

// Campaign runs many seeds, one after the other. It must be used in a test, because only tests can
// seed raft's random source. To use several processors, run several processes with the same Step
// and different First.
type Campaign struct {
	First, Step uint64        // seeds First, First+Step, …
	Least       uint64        // least number of seeds, including those before a resumption
	Time        time.Duration // the campaign begins new seeds until at least this time has passed
	// State is a file with the next seed, so that a stopped campaign can be resumed. Empty means
	// none.
	State     string
	Foundings bool // run foundings (RunFounding) instead of Run
	// Page is a file. If it is not empty, the first seed that fails is shrunk (see Shrink) and shown
	// in this file.
	Page string

	Seed    func(seed uint64)           // seeds crypto/rand
	Judge   func([]history.Event) error // second judge of each history; nil means none
	Package string                      // directory of the test, from the root of the repository
	Say     func(format string, args ...any)
}

// Total sums up a campaign.
type Total struct {
	Runs    int
	Settled time.Duration // the longest time until a run was settled after healing
	Slowest uint64        // the seed of that run
	Longest Waited        // what it waited for most
	Stats   Stats
}

// Wait describes the longest wait after healing.
func (t *Total) Wait() string {
	text := "the longest wait after healing: " + t.Settled.Round(time.Millisecond).String()
	if t.Longest.Time == 0 {
		return text
	}
	return fmt.Sprintf("%s (seed %d, %v of it for %s)", text, t.Slowest, t.Longest.Time.Round(time.Millisecond),
		t.Longest.For)
}

// Run runs the campaign until the first failure. The error contains the seed, the command that
// repeats it, the last events and the broken rule.
func (c *Campaign) Run() (Total, error) {
	var total Total
	begun, step := time.Now(), max(c.Step, 1)
	said := begun
	seed, err := c.resume()
	if err != nil {
		return total, err
	}
	for (seed-c.First)/step < c.Least || time.Since(begun) < c.Time {
		r, err := c.one(seed)
		total.Runs++
		if r.Settled > total.Settled {
			total.Settled, total.Slowest, total.Longest = r.Settled, seed, r.Longest
		}
		total.Stats.Add(r.Stats)
		if err != nil {
			return total, err
		}
		seed += step
		if err := c.note(seed); err != nil {
			return total, err
		}
		if now := time.Now(); now.Sub(said) >= sayAfter {
			said = now
			c.Say("%d done in %v, next is seed %d", total.Runs, now.Sub(begun).Round(time.Second), seed)
		}
	}
	return total, nil
}

const (
	lastEvents = 60
	sayAfter   = 10 * time.Second // from one line of Say to the next, if no run takes longer
)

// The method one runs a single seed. If the run fails, the seed is run again with a transcript,
// and both runs must have the same hash and fault.
func (c *Campaign) one(seed uint64) (*Report, error) {
	r := c.run(seed, c.config(seed))
	if r.Fault == "" {
		return r, nil
	}
	cfg := c.config(seed)
	cfg.Verbose = true
	again := c.run(seed, cfg)
	last := again.Transcript[max(0, len(again.Transcript)-lastEvents):]
	text := strings.Join(last, "\n") + "\n" + again.Fault
	if again.Hash != r.Hash || again.Fault != r.Fault {
		text += fmt.Sprintf("\nthe seed is not repeatable: hash %x, then %x, where the first run found: %s", r.Hash,
			again.Hash, r.Fault)
	} else if c.Page != "" {
		text += "\n" + c.show(seed, again)
	}
	return again, fmt.Errorf("%v\n%s\nrepeat it: %s", again.Config.String(), text, c.command(seed))
}

// shrinkRuns is the number of runs to shrink a failure, a quarter of an hour on one core.
const shrinkRuns = 2000

// show shrinks a failure, writes its page, and reports the faults that are left.
func (c *Campaign) show(seed uint64, failed *Report) string {
	c.Say("seed %d has failed, and is shrunk in up to %d runs", seed, shrinkRuns)
	s := Shrink(failed, shrinkRuns, func(cfg Config) *Report { return c.run(seed, cfg) })
	text := fmt.Sprintf("shrunk in %d runs to %d parts (minimal: %v):\n%s\n%s", s.Runs, len(s.Faults), s.Minimal,
		strings.Join(s.Faults, "\n"), s.Fault)
	page := s.Page(fmt.Sprintf("Simulation, seed %d", seed), c.command(seed), s.Minimal, s.Faults,
		[]string{"Before the run was shrunk, the judge said: " + failed.Fault})
	var html bytes.Buffer
	err := page.Write(&html)
	if err == nil {
		err = os.WriteFile(c.Page, html.Bytes(), 0o644)
	}
	if err != nil {
		return text + "\nno page: " + err.Error()
	}
	return text + "\nthe page of the shrunk run: " + c.Page
}

func (c *Campaign) config(seed uint64) Config {
	if c.Foundings {
		return DrawFounding(seed)
	}
	return Draw(seed)
}

func (c *Campaign) run(seed uint64, cfg Config) *Report {
	c.Seed(seed)
	var r *Report
	if c.Foundings {
		r = RunFounding(seed, cfg)
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
	if c.Foundings {
		return fmt.Sprintf("MORTISE_SEED=%d MORTISE_BIRTHS=1 go test -C %s -run TestBirths .", seed, c.Package)
	}
	return fmt.Sprintf("MORTISE_SEED=%d MORTISE_SEEDS=1 go test -C %s -run TestSeeds .", seed, c.Package)
}

// resume returns the seed in the file State, or First if the file does not exist.
func (c *Campaign) resume() (uint64, error) {
	if c.State == "" {
		return c.First, nil
	}
	b, err := os.ReadFile(c.State)
	if errors.Is(err, fs.ErrNotExist) {
		return c.First, nil
	}
	if err != nil {
		return 0, err
	}
	next, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s does not say which seed is next: %w; remove it to begin anew", c.State, err)
	}
	return next, nil
}

func (c *Campaign) note(next uint64) error {
	if c.State == "" {
		return nil
	}
	return os.WriteFile(c.State, []byte(strconv.FormatUint(next, 10)+"\n"), 0o644)
}

// FromEnvironment sets fields from environment variables. First comes from MORTISE_SEED, Step
// from MORTISE_STEP, Time from MORTISE_TIME, State from MORTISE_STATE and Page from MORTISE_PAGE.
// Least comes from MORTISE_SEEDS, or from MORTISE_BIRTHS for foundings. If that is empty, it comes
// from MORTISE_LEAST. If that is empty too, Least is the value of the parameter runs. A value that
// cannot be parsed is an error.
func (c *Campaign) FromEnvironment(runs uint64) (err error) {
	number := func(name string, or uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return or
		}
		n, wrong := strconv.ParseUint(text, 10, 64)
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s is %q, not a number", name, text))
		}
		return n
	}
	c.First, c.Step, c.State = number("MORTISE_SEED", 1), number("MORTISE_STEP", 1), os.Getenv("MORTISE_STATE")
	c.Page = os.Getenv("MORTISE_PAGE")
	if c.Foundings {
		c.Least = number("MORTISE_BIRTHS", number("MORTISE_LEAST", runs))
	} else {
		c.Least = number("MORTISE_SEEDS", number("MORTISE_LEAST", runs))
	}
	if text := os.Getenv("MORTISE_TIME"); text != "" {
		var wrong error
		if c.Time, wrong = time.ParseDuration(text); wrong != nil {
			err = errors.Join(err, fmt.Errorf("MORTISE_TIME is %q, not a time such as 4m", text))
		}
	}
	return err
}
