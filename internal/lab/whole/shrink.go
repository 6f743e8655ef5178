package whole

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/shrink"
	"github.com/mortise-lock/mortise/internal/lab/timeline"
)

// Shrinker finds the parts of a failed run that the failure needs. Each run is a process of the
// test binary of this package.
type Shrinker struct {
	Binary string // built with the changed runtime
	Dir    string // for the files of the runs
	Seed   uint64
	// Transcript is the file for the transcripts. The length of its name must be that of the run
	// that has failed, because the order of a map with pointers depends on where the heap has them.
	Transcript string
	Runs       int       // at most about so many
	Out        io.Writer // gets a line from time to time
}

const (
	oneRun    = 100 * time.Second // the longest time of a run
	pageNotes = 400               // lines of the transcript
	pageAfter = 10                // of them from the objection on
)

// Page shrinks the failed run, and returns its page. The parameter command repeats the run. If a
// run fails so that it leaves no report, it counts as failed; if the last one does, there is no
// page, but an error with what the process has printed.
func (s *Shrinker) Page(ctx context.Context, command string) (*timeline.Page, error) {
	first, out, failed := s.run(ctx, nil)
	if !failed {
		return nil, fmt.Errorf("seed %d passes", s.Seed)
	}
	if first == nil {
		return nil, fmt.Errorf("seed %d ends without a report:\n%s", s.Seed, out)
	}
	s.say("seed %d fails: %s", s.Seed, first.Bugs[0])
	parts := slices.DeleteFunc(slices.Clone(first.Parts), func(p Part) bool { return p.Kind == Refusal })
	parts, minimal, last := s.reduce(ctx, parts, first)
	if taken := apart(parts, last); minimal && len(taken) > 0 {
		if parts, minimal, last = s.reduce(ctx, taken, last); !minimal {
			s.say("there was no time for all refusals")
		}
	}
	return s.page(last, parts, minimal, command)
}

// reduce leaves out parts, and returns the others with the report of the last run that has failed.
func (s *Shrinker) reduce(ctx context.Context, parts []Part, last *Report) ([]Part, bool, *Report) {
	begun, n := s.Runs, len(parts)
	on, minimal := shrink.Minimal(n, s.Runs, func(on []int) bool {
		s.Runs--
		var names []string
		for _, i := range on {
			names = append(names, parts[i].Name())
		}
		r, _, failed := s.run(ctx, append(names, nothing))
		if failed && r != nil {
			last = r
		}
		if done := begun - s.Runs; done%20 == 0 {
			s.say("%d runs, at least %d of %d parts can be left out", done, n-len(last.Parts), n)
		}
		return failed && r != nil
	})
	var left []Part
	for _, i := range on {
		left = append(left, parts[i])
	}
	s.say("%d runs, %d of %d parts are left", begun-s.Runs, len(left), n)
	return left, minimal && ctx.Err() == nil, last
}

// apart replaces the refusals of a place by the single ones that have happened. It returns nil if
// there are none.
func apart(parts []Part, last *Report) (all []Part) {
	any := false
	for _, p := range parts {
		if p.Kind != Refusals {
			all = append(all, p)
			continue
		}
		for _, single := range last.Parts {
			if single.Kind == Refusal && single.Of == p.N {
				all, any = append(all, single), true
			}
		}
	}
	if !any {
		return nil
	}
	return all
}

// run runs the seed with some parts, or with all if only is nil.
func (s *Shrinker) run(ctx context.Context, only []string) (r *Report, out []byte, failed bool) {
	report := filepath.Join(s.Dir, "report.json")
	_ = os.Remove(report)
	limited, cancel := context.WithTimeout(ctx, oneRun)
	defer cancel()
	process := exec.CommandContext(limited, s.Binary, "-test.run", "^TestSeeds$")
	process.Env = append(os.Environ(), "TMPDIR="+s.Dir, "MORTISE_SEED="+strconv.FormatUint(s.Seed, 10), "MORTISE_SEEDS=1",
		"MORTISE_TRANSCRIPT="+s.Transcript, "MORTISE_REPORT="+report)
	if only != nil {
		process.Env = append(process.Env, "MORTISE_ONLY="+strings.Join(only, ","))
	}
	out, err := process.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return nil, out, false
	}
	if r, err = readReport(report); err != nil || len(r.Bugs) == 0 {
		return nil, out, true
	}
	return r, out, true
}

func (s *Shrinker) say(format string, args ...any) { fmt.Fprintf(s.Out, format+"\n", args...) }

// page repeats the smallest run, whose transcript it shows.
func (s *Shrinker) page(r *Report, parts []Part, minimal bool, command string) (*timeline.Page, error) {
	var names []string
	for _, p := range parts {
		names = append(names, p.Name())
	}
	if again, out, failed := s.run(context.Background(), append(names, nothing)); again != nil {
		r = again
	} else {
		return nil, fmt.Errorf("the smallest run of seed %d leaves no report the second time (it fails: %t):\n%s",
			s.Seed, failed, out)
	}
	p := &r.Page
	p.Title, p.Command, p.Verdict, p.Minimal = fmt.Sprintf("Whole nodes, seed %d", s.Seed), command, r.Bugs[0], minimal
	only := strings.Join(append(names, nothing), ",")
	p.Remarks = []string{r.Plan, "The smallest run alone: MORTISE_ONLY='" + only + "'"}
	var faults []time.Duration
	for _, part := range parts {
		at := part.At
		for _, happened := range r.Parts { // at the time of this run
			if happened.Name() == part.Name() {
				at = happened.At
			}
		}
		text := part.Name() + ": " + part.Text
		if at > 0 {
			text = fmt.Sprintf("%s, at %.3f s", text, at.Seconds())
		}
		p.Faults = append(p.Faults, text)
		if part.Kind == AFault || part.Kind == Refusal {
			faults = append(faults, at)
		}
	}
	slices.Sort(faults)
	p.Focus(r.TTL, faults)
	p.Lanes = slices.DeleteFunc(p.Lanes, func(lane string) bool { return !inWindow(p, lane) })
	text, err := os.ReadFile(s.Transcript)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if objection := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, " BUG ") }); objection >= 0 {
		lines = lines[:min(len(lines), objection+pageAfter)]
	}
	p.Notes = lines[max(0, len(lines)-pageNotes):]
	return p, nil
}

// inWindow reports whether a lane has something in the window of a page.
func inWindow(p *timeline.Page, lane string) bool {
	return slices.ContainsFunc(p.Bars, func(b timeline.Bar) bool {
		return b.Lane == lane && b.From <= p.To && b.To >= p.From
	}) || slices.ContainsFunc(p.Marks, func(m timeline.Mark) bool {
		return m.Lane == lane && m.At >= p.From && m.At <= p.To
	})
}
