// Command catch switches on every bug of internal/lab/mutants in turn and runs the checks against
// it, from the fastest layer to the slowest, until one of them fails. For each bug it prints
// which layer and test caught it, with which seed and after how long. It fails if any bug is
// caught by no layer. Without -passed, it also fails if a layer fails with no bug switched on.
//
//	go run ./internal/lab/mutants/catch [-some] [-passed] [-every] [-record] [-layers a,b] \
//		[-j processes] [name ...]
//
// It runs first the test, with the seed, that internal/lab/mutants/caught.txt names for the bug,
// which takes a second; -record writes there what caught each bug now. Each layer's test binary is
// built once and contains all bugs. With equal sources, the simulations catch a bug with the same
// seed each time. -j sets the number of processes. A layer that hangs is stopped after four
// minutes, and the next layer is run.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/mutants"
	"github.com/mortise-lock/mortise/internal/lab/mutants/binaries"
)

func main() {
	some := flag.Bool("some", false, "only the part that CI runs at every merge, without whole nodes")
	passed := flag.Bool("passed", false, "do not run the layers without a bug: their tests have just passed elsewhere")
	every := flag.Bool("every", false, "run every layer against every bug, and print which of them see it")
	record := flag.Bool("record", false, "write down what catches each bug")
	layers := flag.String("layers", "", "only these layers, by name and with commas between (default all)")
	workers := flag.Int("j", 2, "processes at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, choice{*some, *passed, *every, *record, *layers, *workers}, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

type choice struct {
	some, passed, every, record bool
	layers                      string
	workers                     int
}

func run(ctx context.Context, c choice, names []string) error {
	bugs := mutants.All()
	if c.some {
		bugs = slices.DeleteFunc(bugs, func(b mutants.Bug) bool { return !b.Some })
	}
	if len(names) > 0 {
		bugs = slices.DeleteFunc(bugs, func(b mutants.Bug) bool { return !slices.Contains(names, b.Name) })
	}
	if len(bugs) == 0 || len(names) > len(bugs) {
		return fmt.Errorf("some of %q are no planted bugs; internal/lab/mutants lists them", names)
	}
	begun := time.Now()
	layers := c.layersFor(bugs)
	fmt.Println("building the tests, with all bugs in them")
	bench, err := prepare(ctx, layers, c.first(layers, bugs), c.workers)
	if err != nil {
		return err
	}
	defer bench.Close()
	if !c.some {
		if err := bench.compile(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("built in %v\n\n", time.Since(begun).Round(time.Second))
	if !c.passed {
		if err := bench.healthy(ctx, bugs, c.workers); err != nil {
			return err
		}
	}
	missed, caught := table(ctx, bench, bugs, c.every, c.workers)
	if c.record {
		all := mutants.Catchers()
		maps.Copy(all, caught)
		if err := os.WriteFile("internal/lab/mutants/caught.txt", []byte(mutants.Record(all)), 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("\n%d bugs, %d of them caught, in %v\n", len(bugs), len(bugs)-missed,
		time.Since(begun).Round(time.Second))
	if missed > 0 {
		return fmt.Errorf("%d planted bugs were caught by nothing", missed)
	}
	return ctx.Err()
}

func (c choice) layersFor(bugs []mutants.Bug) []mutants.Layer {
	only := strings.Split(c.layers, ",")
	return slices.DeleteFunc(mutants.Layers(), func(l mutants.Layer) bool {
		if c.some && l.Dear || c.layers != "" && !slices.Contains(only, l.Name) {
			return true
		}
		return !slices.ContainsFunc(bugs, func(b mutants.Bug) bool { return l.Sees(b) })
	})
}

// first returns the packages whose tests the recorded catchers need, and all packages if the layers
// run without a bug.
func (c choice) first(layers []mutants.Layer, bugs []mutants.Bug) (packages []string) {
	known := mutants.Catchers()
	for _, l := range layers {
		if !c.passed || c.every || slices.ContainsFunc(bugs, func(b mutants.Bug) bool {
			return known[b.Name].Layer == l.Name
		}) {
			packages = append(packages, l.Package)
		}
	}
	return packages
}

func table(ctx context.Context, b *bench, bugs []mutants.Bug, every bool, workers int) (missed int,
	by map[string]mutants.Catcher) {
	by = map[string]mutants.Catcher{}
	const form = "%-30s %-9s %-10s %-44s %6s %7s\n"
	fmt.Printf(form, "bug", "hazard", "caught by", "test", "seed", "after")
	found := make([][]sighting, len(bugs))
	binaries.Each(len(bugs), workers, func(i int) { found[i] = b.hunt(ctx, bugs[i], every) }, func(i int) {
		bug, caught := bugs[i], false
		for _, s := range found[i] {
			if !s.Failed && !s.Slow && !every {
				continue
			}
			test := s.Test
			if s.Failed && !caught && strings.HasPrefix(test, "Test") {
				by[bug.Name] = mutants.Catcher{Layer: s.layer, Test: test, Seed: s.Seed}
			}
			if caught = caught || s.Failed; s.Slow {
				test = "(too slow to say)"
			} else if !s.Failed {
				test = "(does not see it)"
			}
			test = shown(test)
			fmt.Printf(form, bug.Name, bug.Hazard, s.layer, test, s.Seed, s.Took.Round(10*time.Millisecond))
		}
		if !caught {
			missed++
			fmt.Printf(form, bug.Name, bug.Hazard, "NOTHING", "although "+bug.Breaks, "", "")
		}
	})
	return missed, by
}

func shown(test string) string {
	if len(test) > 44 {
		return test[:41] + "..."
	}
	return test
}
