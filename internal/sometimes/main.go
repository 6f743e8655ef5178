// Command sometimes checks that the campaigns reach the rare paths of the shells: each branch that
// refuses, drops a message or tries again. A path that no campaign reaches is not tested by it,
// whatever the campaign says. The command finds these branches in the source, runs the campaigns
// with coverage, and prints how often each branch was reached:
//
//	go run ./internal/sometimes [-least N] [-v] [PROFILE ...]
//
// Without arguments it runs the campaigns: whole nodes, simulated clusters and faulty disks.
// Otherwise it reads the profiles of go test -coverprofile. It fails if a branch was reached fewer
// than -least times and exceptions.txt does not give a reason. The product contains no counters.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	least := flag.Int("least", 1, "how often each branch must be reached")
	verbose := flag.Bool("v", false, "print every branch, not only those that are missing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Args(), *least, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, profiles []string, least int, verbose bool) error {
	points, err := find(".")
	if err != nil {
		return err
	}
	text, err := os.ReadFile("internal/sometimes/exceptions.txt")
	if err != nil {
		return err
	}
	reasons, err := exceptions(string(text))
	if err != nil {
		return err
	}
	if len(profiles) == 0 {
		dir, err := os.MkdirTemp("", "sometimes")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if profiles, err = campaigns(ctx, dir); err != nil {
			return err
		}
	}
	var all []block
	for _, profile := range profiles {
		text, err := os.ReadFile(profile)
		if err != nil {
			return err
		}
		some, err := blocks(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", profile, err)
		}
		all = append(all, some...)
	}
	return report(points, counts(points, all), reasons, least, verbose)
}

// campaigns runs the campaigns and returns their profiles.
func campaigns(ctx context.Context, dir string) (profiles []string, err error) {
	var covered []string
	for _, shell := range shells {
		covered = append(covered, "./"+shell)
	}
	for _, pkg := range []string{"internal/e2e", "internal/whole", "internal/sim", "raftlog/storage"} {
		if _, err := os.Stat(pkg); err != nil {
			continue
		}
		profile := filepath.Join(dir, strings.ReplaceAll(pkg, "/", "-"))
		fmt.Printf("%s runs\n", pkg)
		command := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout=2h", "-covermode=atomic",
			"-coverpkg="+strings.Join(covered, ","), "-coverprofile="+profile, "./"+pkg)
		if out, err := command.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("the campaign %s: %w\n%s", pkg, err, out)
		}
		profiles = append(profiles, profile)
	}
	return profiles, nil
}

func report(points []point, reached []int, reasons map[string]string, least int, verbose bool) error {
	type tally struct{ all, reached, excepted int }
	byDir, needed := map[string]*tally{}, map[string]bool{}
	var missing []string
	for i, p := range points {
		dir := filepath.Dir(p.file)
		if byDir[dir] == nil {
			byDir[dir] = &tally{}
		}
		t := byDir[dir]
		t.all++
		about, reason := p.reason(reasons)
		switch {
		case reached[i] >= least:
			t.reached++
		case about != "":
			t.excepted++
			needed[about] = true
		default:
			missing = append(missing, fmt.Sprintf("%9d  %s:%d %s: %s: %s", reached[i], p.file, p.line, p.fun, p.kind, p.text))
		}
		if verbose {
			fmt.Printf("%9d  %s:%d %s: %s: %s %s\n", reached[i], p.file, p.line, p.fun, p.kind, p.text, reason)
		}
	}
	fmt.Printf("%-20s %8s %8s %10s\n", "rare paths", "all", "reached", "exceptions")
	for _, dir := range shells {
		if t := byDir[dir]; t != nil {
			fmt.Printf("%-20s %8d %8d %10d\n", dir, t.all, t.reached, t.excepted)
		}
	}
	for _, about := range slices.Sorted(maps.Keys(reasons)) {
		if !needed[about] {
			fmt.Printf("exceptions.txt need not name %s: all of it was reached\n", about)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	fmt.Printf("\nReached fewer than %d times. Let a campaign reach them, or give a reason in\n"+
		"internal/sometimes/exceptions.txt:\n%s\n", least, strings.Join(missing, "\n"))
	return errors.New("the campaigns do not reach all rare paths")
}
