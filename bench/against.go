package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// against compares this build with another build of this program, o.against, and writes a section
// of docs/SPEED.md. In each round the two builds measure one peer directly after each other, in an
// order that changes with every round. Each ratio is computed from one such pair.
func against(ctx context.Context, o options, progress, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(o.dir, "mortise-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var all Record
	chosen := slices.DeleteFunc(all.choose(o, progress), func(p Peer) bool { return p.Kind != "mortise" })
	fmt.Fprintf(progress, "waiting up to %v until others leave the machine alone\n", waitForQuiet)
	awaitQuiet(waitForQuiet)
	runs := map[[2]string][]pair{}
	for round := range o.rounds {
		for _, p := range chosen {
			c := childOptions{Peer: p.Name, Workloads: workloadsFor(p, o), Duration: o.duration, Quick: o.quick}
			programs := []string{o.against, self}
			if round%2 == 1 {
				slices.Reverse(programs)
			}
			results := map[string][]Result{}
			for _, program := range programs {
				c.Dir = filepath.Join(dir, p.Name)
				if err := os.MkdirAll(c.Dir, 0o711); err != nil {
					return err
				}
				child, err := runChild(ctx, program, c)
				if err != nil {
					return fmt.Errorf("%s of %s: %w", p.Name, program, err)
				}
				results[program] = child.Results
				_ = os.RemoveAll(c.Dir)
			}
			for i, old := range results[o.against] {
				key := [2]string{p.Name, old.Workload}
				runs[key] = append(runs[key], pair{old, results[self][i]})
			}
			fmt.Fprintf(progress, "round %d of %d: %s\n", round+1, o.rounds, p.Name)
		}
	}
	_, err = io.WriteString(out, againstSection(chosen, runs, o.rounds, look(dir), o.named))
	return err
}

type pair struct{ old, new Result }

func ratios(pairs []pair, figure func(Result) float64) (middle, least, most float64) {
	var all []float64
	for _, p := range pairs {
		if old := figure(p.old); old > 0 {
			all = append(all, figure(p.new)/old)
		}
	}
	if len(all) == 0 {
		return 0, 0, 0
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2, all[0], all[len(all)-1]
}

func againstSection(chosen []Peer, runs map[[2]string][]pair, rounds int, m Machine, other string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Against an earlier build\n\n`go run . -against PROGRAM` writes this section. PROGRAM is this "+
		"benchmark built at another commit.\n%s:\n%d cores (%s), %s. The other build is %s.\nIn each of %d rounds both "+
		"builds ran directly after each other. Ratios are new to old: the\nmedian and, in parentheses, the lowest and "+
		"the highest of the rounds.\n\n", m.When, m.Cores, m.CPU, m.Go, other, rounds)
	var rows [][]string
	for _, p := range chosen {
		for _, w := range workloads() {
			pairs := runs[[2]string{p.Name, w.Name}]
			if len(pairs) == 0 {
				continue
			}
			row := []string{p.Name, workloadTitle(w.Name)}
			for _, figure := range []func(Result) float64{
				func(r Result) float64 { return r.Rate },
				func(r Result) float64 { return float64(r.P50) },
				func(r Result) float64 { return r.Allocs },
			} {
				row = append(row, ratioCell(ratios(pairs, figure)))
			}
			rows = append(rows, row)
		}
	}
	writeTable(&b, []string{"", "workload", "rate", "median time", "allocations"}, rows)
	return b.String()
}

func ratioCell(middle, least, most float64) string {
	if middle == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", middle, least, most)
}
