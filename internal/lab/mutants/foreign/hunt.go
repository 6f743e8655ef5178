package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/mutants/binaries"
)

// together is the limit for the tests of one suite against one mutation. It is generous, because
// the machine may be busy.
const together = 4 * time.Minute

// trial is one test and what it reaches without a mutation.
type trial struct {
	suite   *suite
	name    string
	took    time.Duration
	reaches map[int]bool
}

// key names the test. What it reaches is the same in each suite.
func (r *trial) key() string { return r.suite.pkg + " " + r.suite.env + " " + r.name }

// ground has the built tests.
type ground struct {
	*binaries.Set
	overlays map[string]string // by the directory of the module, with the mutations in that module
	built    map[string]bool   // the packages whose tests are built
	suites   []*suite          // those of the present stage
	trials   []*trial
	scouted  map[string]*trial // what both stages have run without a mutation
	workers  int
	alone    time.Duration // the limit for one test without a mutation
	rest     bool          // the wide tests are all tests of whole nodes
}

// plough writes the drawn points into overlays. A module's overlay has no points of other modules:
// the tests of a nested module run only against its own, and mortise below it is then not built
// again.
func plough(t *tree, drawn []*point, workers int, alone time.Duration) (*ground, error) {
	set, err := binaries.New()
	if err != nil {
		return nil, err
	}
	g := &ground{Set: set, overlays: map[string]string{}, built: map[string]bool{}, scouted: map[string]*trial{},
		workers: workers, alone: alone}
	files := map[string]map[string][]byte{}
	for dir, c := range t.packages {
		var here []*point
		for _, p := range drawn {
			if p.dir == dir {
				here = append(here, p)
			}
		}
		if len(here) == 0 {
			continue
		}
		module := binaries.Module(dir)
		if files[module] == nil {
			files[module] = map[string][]byte{}
		}
		maps.Copy(files[module], overlaid(c, dir, here, len(drawn)))
	}
	for module, changed := range files {
		to := filepath.Join(set.Dir(), "source", strings.ReplaceAll(module, "/", "_"))
		if g.overlays[module], err = write(changed, to); err != nil {
			g.Close()
			return nil, err
		}
	}
	return g, nil
}

// prepare builds the tests of a stage that can see the points, and runs each once. The first stage
// has the tests of the mutated packages, the second one all others.
func (g *ground) prepare(ctx context.Context, wide bool, left []*point, say func(string, ...any)) error {
	g.suites, g.trials = nil, nil
	known := map[suite]bool{}
	packages := map[string][]string{} // by module
	for _, p := range left {
		for _, s := range suitesFor(p.dir) {
			if g.rest && s.run == nodes {
				s.run = ""
			}
			if s.wide != wide || known[s] || !hasTests(s.pkg) {
				continue
			}
			known[s] = true
			g.suites = append(g.suites, &s)
			if module := binaries.Module(s.pkg); !g.built[s.pkg] {
				g.built[s.pkg] = true
				packages[module] = append(packages[module], s.pkg)
			}
		}
	}
	slices.SortFunc(g.suites, func(a, b *suite) int {
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.run, b.run))
	})
	for _, module := range sortedKeys(packages) {
		if err := g.Build(ctx, g.overlays[module], packages[module], g.workers); err != nil {
			return err
		}
	}
	g.scout(ctx, say)
	return ctx.Err()
}

// scout runs each test alone without a mutation and notes which points it reaches. A test that
// fails twice, or takes too long, is left out.
func (g *ground) scout(ctx context.Context, say func(string, ...any)) {
	var all []*trial
	for _, s := range g.suites {
		listing := g.Run(ctx, s.pkg, []string{"-test.list", "."}, nil, g.alone)
		for name := range strings.Lines(string(listing.Output)) {
			name = strings.TrimSpace(name)
			if strings.HasPrefix(name, "Test") && (s.run == "" || regexp.MustCompile(s.run).MatchString(name)) &&
				(s.skip == "" || !regexp.MustCompile(s.skip).MatchString(name)) {
				r := &trial{suite: s, name: name}
				if before := g.scouted[r.key()]; before == nil {
					all = append(all, r)
				} else if before.reaches != nil {
					r.took, r.reaches = before.took, before.reaches
					g.trials = append(g.trials, r)
				}
			}
		}
	}
	say("%d tests are run once without a mutation, to see what they reach\n", len(all))
	begun := time.Now()
	binaries.Each(len(all), g.workers, func(i int) {
		r := all[i]
		for try := range 2 {
			note := filepath.Join(g.Dir(), fmt.Sprintf("reach-%d-%d", i, try))
			o := g.run(ctx, r.suite, "^"+r.name+"$", 0, g.alone, reachVariable+"="+note)
			if o.Slow || ctx.Err() != nil {
				return
			}
			if o.Failed {
				continue
			}
			r.took, r.reaches = o.Took, map[int]bool{}
			text, _ := os.ReadFile(note) // absent if it reaches none
			for _, number := range strings.Fields(string(text)) {
				if n, err := strconv.Atoi(number); err == nil {
					r.reaches[n] = true
				}
			}
			return
		}
	}, func(i int) {
		r := all[i]
		g.scouted[r.key()] = r
		if r.reaches == nil {
			say("left out: %s of %s fails or takes too long without a mutation\n", r.name, r.suite.pkg)
		} else if g.trials = append(g.trials, r); (i+1)%100 == 0 {
			say("%d of %d tests, after %v\n", i+1, len(all), time.Since(begun).Round(time.Second))
		}
	})
}

func (g *ground) run(ctx context.Context, s *suite, tests string, n int, limit time.Duration,
	env ...string) binaries.Outcome {
	args := []string{"-test.failfast", "-test.run", tests}
	if s.skip != "" {
		args = append(args, "-test.skip", s.skip)
	}
	env = append(append(env, strings.Fields(s.env)...), switchVariable+"="+strconv.Itoa(n))
	return g.Run(ctx, s.pkg, args, env, limit)
}

// verdict is what became of one mutation.
type verdict struct {
	*point
	caught  bool
	by      string // the package and test that caught it
	reached int    // how many tests reach it
	cut     bool   // the time was over before all of them had run
	took    time.Duration
}

// hunt runs the tests that reach the point, the fastest first, until one of them fails. A failure
// counts if the test fails again alone, or if it passes alone without the mutation.
func (g *ground) hunt(ctx context.Context, p *point, each time.Duration) (v verdict) {
	v = verdict{point: p}
	begun := time.Now()
	defer func() { v.took = time.Since(begun) }()
	bySuite := map[*suite][]*trial{}
	for _, r := range g.trials {
		if r.reaches[p.n] {
			bySuite[r.suite] = append(bySuite[r.suite], r)
			v.reached++
		}
	}
	cost := func(s *suite) (sum time.Duration) {
		for _, r := range bySuite[s] {
			sum += r.took
		}
		return sum
	}
	suites := slices.Clone(g.suites)
	slices.SortStableFunc(suites, func(a, b *suite) int { return cmp.Compare(cost(a), cost(b)) })
	for _, s := range suites {
		trials := bySuite[s]
		slices.SortStableFunc(trials, func(a, b *trial) int { return cmp.Compare(a.took, b.took) })
		for len(trials) > 0 {
			if time.Since(begun) > each {
				v.cut = true
				return v
			}
			some := upTo(trials, 8*time.Second)
			trials = trials[len(some):]
			if by := g.fails(ctx, s, some, p.n); by != "" {
				v.caught, v.by = true, s.pkg+" "+by
				return v
			}
		}
	}
	return v
}

// upTo returns the first trials that together take at most the time, but at least one.
func upTo(trials []*trial, most time.Duration) []*trial {
	var sum time.Duration
	for i, r := range trials {
		if sum += r.took; i > 0 && sum > most {
			return trials[:i]
		}
	}
	return trials
}

func (g *ground) fails(ctx context.Context, s *suite, trials []*trial, n int) string {
	var names []string
	var usual time.Duration
	for _, r := range trials {
		names = append(names, r.name)
		usual += r.took
	}
	tests := "^(" + strings.Join(names, "|") + ")$"
	o := g.run(ctx, s, tests, n, min(together, 20*time.Second+5*usual))
	switch {
	case ctx.Err() != nil:
		return ""
	case o.Slow: // it hangs, if it does not hang without the mutation
		if g.run(ctx, s, tests, 0, min(together, 20*time.Second+5*usual)).Slow {
			return ""
		}
		return "(hangs)"
	case !o.Failed:
		return ""
	}
	again := "^" + o.Test + "$"
	if !strings.HasPrefix(o.Test, "Test") || strings.HasSuffix(o.Test, "...") {
		again = tests
	}
	if second := g.run(ctx, s, again, n, together); second.Failed || second.Slow {
		return o.Test
	}
	if g.run(ctx, s, again, 0, together).Failed {
		return ""
	}
	return o.Test + " (one of two times)"
}
