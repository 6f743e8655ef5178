package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// against compares this build with another build of this program, o.against, and writes a section
// of docs/SPEED.md. In each round the two builds measure one peer directly after each other, in an
// order that changes with every round. The error names the rows whose rate does not reach 0.97 of
// the other build's.
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
			for _, old := range results[o.against] {
				key := [2]string{p.Name, old.Workload}
				if n := slices.IndexFunc(results[self], func(r Result) bool { return r.Workload == old.Workload }); n >= 0 {
					runs[key] = append(runs[key], pair{old, results[self][n]})
				}
			}
			fmt.Fprintf(progress, "round %d of %d: %s\n", round+1, o.rounds, p.Name)
		}
	}
	_, err = io.WriteString(out, againstSection(chosen, runs, o.rounds, look(dir), o.named))
	return errors.Join(err, slower(runs))
}

// slower returns an error that names each row that cannot be accepted.
func slower(runs map[[2]string][]pair) error {
	var rows []string
	for row, pairs := range runs {
		if fault := ratioOf(pairs, speed).fault(); fault != "" {
			rows = append(rows, fmt.Sprintf("%s, %s: it %s", row[0], row[1], fault))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	slices.Sort(rows)
	return errors.New(strings.Join(rows, "\n"))
}

func againstSection(chosen []Peer, runs map[[2]string][]pair, rounds int, m Machine, other string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Against an earlier build\n\n`go run . -against PROGRAM` writes this section. PROGRAM is this "+
		"benchmark built at another commit.\n%s:\n%d cores (%s), %s. The other build is %s.\nIn each of %d rounds both "+
		"builds ran directly after each other. Ratios are new to old: of\nthe medians and, in parentheses, the 95 %% "+
		"interval, by resampling the rounds.\n\n", m.When, m.Cores, m.CPU, m.Go, other, rounds)
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
				row = append(row, ratioOf(pairs, figure).String())
			}
			rows = append(rows, row)
		}
	}
	writeTable(&b, []string{"", "workload", "rate", "median time", "allocations"}, rows)
	return b.String()
}
