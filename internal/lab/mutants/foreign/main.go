// Command foreign draws small bugs at random, which no list of planted bugs has, and runs the tests
// against each of them. A bug that no test notices is printed with its file, line and edit, and the
// command fails. The bugs are drawn in the shells, in the code between the parts, in the packages
// over the root, in the programs and in the adapters, equally many in each:
//
//	go run ./internal/lab/mutants/foreign [-n N] [-seed S] [-changed REV] [-budget 1h] [-area A,B] \
//		[-only ID,ID] [-o FILE] [-list] [-rest] [-j processes]
//
// A mutation drops a call, swaps two statements, negates a comparison, uses another value of the
// same type, or never takes a branch. All drawn mutations are built into one set of test binaries
// by an overlay, as with the planted bugs, and a variable switches one of them on; the tree is not
// edited. First each test of a mutated package runs alone without a mutation, which notes what it
// reaches, and each mutation is tried with the tests that reach it. The same follows for the
// mutations that are left, with the tests that the layers of internal/lab/mutants name for the
// package and some of whole nodes, or with all tests of a nested module. Equal seeds and sources
// draw equal mutations; -only repeats single ones.
//
// Left out are mutations that do not compile, texts for people and logs, "err != nil", and the
// mutations that known.txt judges. A survivor that only the rest of ./test.sh would notice is shown
// too; -rest tries all tests of whole nodes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/mutants/binaries"
)

type choice struct {
	n, workers    int
	seed          uint64
	changed, only string
	areas, out    string
	budget, each  time.Duration
	alone         time.Duration
	list, rest    bool
}

func main() {
	var c choice
	flag.IntVar(&c.n, "n", 100, "the number of mutations")
	flag.Uint64Var(&c.seed, "seed", uint64(time.Now().Unix()), "what is drawn")
	flag.StringVar(&c.changed, "changed", "", "draw only on lines that differ from this revision of git")
	flag.StringVar(&c.only, "only", "", "only the mutations with these IDs, with commas between")
	flag.StringVar(&c.areas, "area", "", "only these areas, with commas between")
	flag.StringVar(&c.out, "o", "", "also write the result to this file")
	flag.DurationVar(&c.budget, "budget", time.Hour, "begin no further mutation after this time")
	flag.DurationVar(&c.each, "each", 2*time.Minute, "run no further tests against one mutation after this time")
	flag.DurationVar(&c.alone, "alone", 90*time.Second, "leave out tests that take longer alone, without a mutation")
	flag.BoolVar(&c.list, "list", false, "print what is drawn, and run nothing")
	flag.BoolVar(&c.rest, "rest", false, "try what is left with all tests of whole nodes, not one of each subject")
	flag.IntVar(&c.workers, "j", 2, "processes at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, c choice) error {
	begun := time.Now()
	var out io.Writer = os.Stdout
	if c.out != "" {
		file, err := os.Create(c.out)
		if err != nil {
			return err
		}
		defer file.Close()
		out = io.MultiWriter(os.Stdout, file)
	}
	say := func(form string, args ...any) { fmt.Fprintf(out, form, args...) }
	t, drawn, err := c.drawn(ctx, say)
	if err != nil {
		return err
	}
	if c.list {
		for _, p := range drawn {
			say("%s\n", p)
		}
		return nil
	}
	g, err := plough(t, drawn, c.workers, c.alone)
	if err != nil {
		return err
	}
	defer g.Close()
	g.rest = c.rest
	verdicts, err := c.hunt(ctx, g, drawn, say)
	if left := len(drawn) - len(verdicts); left > 0 {
		say("\n%d mutations were drawn and not tried with all their tests\n", left)
	}
	return errors.Join(conclude(verdicts, c.seed, time.Since(begun), say), err)
}

// hunt tries all points, first with the tests of their packages, then what is left with the wide
// tests. It returns a verdict for each point that was tried with both.
func (c choice) hunt(ctx context.Context, g *ground, left []*point, say func(string, ...any)) ([]verdict, error) {
	var all []verdict
	begun, n := time.Now(), len(left)
	earlier := map[*point]verdict{}
	for _, wide := range []bool{false, true} {
		if len(left) == 0 {
			break
		}
		if err := g.prepare(ctx, wide, left, say); err != nil {
			return all, err
		}
		say("%d mutations, after %v\n\n", len(left), time.Since(begun).Round(time.Second))
		var survived []*point
		verdicts := make([]verdict, len(left))
		binaries.Each(len(left), c.workers, func(i int) {
			if time.Since(begun) < c.budget && ctx.Err() == nil {
				verdicts[i] = g.hunt(ctx, left[i], c.each)
			}
		}, func(i int) {
			v := verdicts[i]
			if v.point == nil || ctx.Err() != nil {
				return
			}
			before := earlier[v.point]
			v.reached, v.cut, v.took = v.reached+before.reached, v.cut || before.cut, v.took+before.took
			if !v.caught && !wide {
				earlier[v.point] = v
				survived = append(survived, v.point)
				say("for the wide tests, after %s: %s\n", time.Since(begun).Round(time.Second), v.point)
				return
			}
			all = append(all, v)
			say("%3d of %d, after %s: %s\n", len(all), n, time.Since(begun).Round(time.Second), v)
		})
		left = survived
	}
	return all, ctx.Err()
}

// drawn reads the tree and draws.
func (c choice) drawn(ctx context.Context, say func(string, ...any)) (*tree, []*point, error) {
	in := areas()
	if c.areas != "" {
		named := strings.Split(c.areas, ",")
		in = slices.DeleteFunc(in, func(a area) bool { return !slices.Contains(named, a.name) })
	}
	t, err := plant(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile("internal/lab/mutants/foreign/known.txt")
	if err != nil {
		return nil, nil, err
	}
	reasons, err := known(string(text))
	if err != nil {
		return nil, nil, err
	}
	say("%d mutations are possible, seed %d\n", len(t.all), c.seed)
	var drawn []*point
	if c.only != "" {
		named := strings.Split(c.only, ",")
		for _, p := range t.all {
			if slices.Contains(named, p.id) && !slices.ContainsFunc(drawn, p.crosses) {
				drawn = append(drawn, p)
			}
		}
		drawn = t.compiling(drawn, map[*point]bool{})
		if len(drawn) < len(named) {
			err = fmt.Errorf("%d of the IDs %s are no mutations of this tree, or cross others", len(named)-len(drawn), c.only)
		}
		return t, drawn, err
	}
	present := 0
	t.keep(func(p *point) bool {
		_, judged := reasons[p.id]
		if judged {
			present++
		}
		return !judged
	})
	if stale := len(reasons) - present; stale > 0 && c.areas == "" {
		say("%d lines of known.txt are about code that has changed; remove them\n", stale)
	}
	if c.changed != "" {
		condition, err := changedSince(ctx, c.changed)
		if err != nil {
			return nil, nil, err
		}
		t.keep(condition)
		say("%d of them are on lines that differ from %s\n", len(t.all), c.changed)
	}
	if drawn = t.draw(in, c.n, c.seed); len(drawn) == 0 {
		return nil, nil, errors.New("no mutation is left to draw")
	}
	return t, drawn, nil
}

func (v verdict) String() string {
	if v.caught {
		return fmt.Sprintf("%s\n      caught by %s", v.point, v.by)
	}
	remark := ""
	if v.cut {
		remark = ", and not all of them have run"
	}
	return fmt.Sprintf("%s\n      SURVIVES %d tests that reach it%s (%s)", v.point, v.reached, remark,
		v.took.Round(time.Second))
}

func conclude(verdicts []verdict, seed uint64, took time.Duration, say func(string, ...any)) error {
	tried, caught := map[string]int{}, map[string]int{}
	all, good := 0, 0
	for _, v := range verdicts {
		all++
		tried[v.area]++
		if v.caught {
			good++
			caught[v.area]++
		}
	}
	say("\n%d mutations from seed %d, %d of them caught, in %v\n", all, seed, good, took.Round(time.Second))
	for _, name := range sortedKeys(tried) {
		say("  %-12s %3d of %3d\n", name, caught[name], tried[name])
	}
	if all == good {
		return nil
	}
	say("\nSurvivors. Each needs a test of its class, or a line in internal/lab/mutants/foreign/known.txt:\n")
	for _, v := range verdicts {
		if !v.caught {
			say("%s\n", v)
		}
	}
	return fmt.Errorf("%d mutations survive", all-good)
}
