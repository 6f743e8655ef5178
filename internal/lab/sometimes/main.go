// Command sometimes checks that the campaigns reach the rare paths of the shells: the statements
// that refuse, turn away at a limit, drop a message, try again, or end a wait that took too long. A
// path that no campaign reaches is not tested by it, whatever the campaign says. The command finds
// these paths in the source, runs the campaigns with coverage, and prints how often each was
// reached:
//
//	go run ./internal/lab/sometimes [-least N] [-v] [-keep DIR | -from DIR]
//
// The campaigns are the tests of whole nodes and of faulty disks. The command also runs the rigs,
// the tests that run one shell with the rest replaced. It fails if a path was reached fewer than
// -least times by the campaigns and exceptions.txt does not give a reason, or if that says that a
// rig reaches the path, and none does. The product contains no counters.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	least := flag.Int("least", 1, "how often each path must be reached")
	verbose := flag.Bool("v", false, "print every path, not only those that are missing")
	keep := flag.String("keep", "", "keep the profiles in this directory")
	from := flag.String("from", "", "read the profiles of this directory, and run nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *keep, *from, *least, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, keep, from string, least int, verbose bool) error {
	points, err := find(".")
	if err != nil {
		return err
	}
	text, err := os.ReadFile("internal/lab/sometimes/exceptions.txt")
	if err != nil {
		return err
	}
	reasons, err := exceptions(string(text))
	if err != nil {
		return err
	}
	dir := from
	if dir == "" {
		if dir = keep; dir == "" {
			if dir, err = os.MkdirTemp("", "sometimes"); err != nil {
				return err
			}
			defer os.RemoveAll(dir)
		}
		if err := measure(ctx, dir); err != nil {
			return err
		}
	}
	byCampaigns, err := read(points, filepath.Join(dir, "campaigns*"))
	if err != nil {
		return err
	}
	byRigs, err := read(points, filepath.Join(dir, "rigs*"))
	if err != nil {
		return err
	}
	return report(os.Stdout, points, byCampaigns, byRigs, reasons, least, verbose)
}

// more matches tests that reach nothing more: they repeat the same with more instances, or build
// other programs.
const more = "LargeCluster|TestScale$|AnOldBuildIsRefused"

// measure runs the campaigns and the rigs, and writes their profiles into a directory. It does not
// use the race detector: the counters of the profiles order memory accesses, and would hide races.
func measure(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var covered []string
	for _, s := range shells {
		covered = append(covered, "./"+s.dir)
	}
	for _, part := range []struct {
		name     string
		packages []string
	}{{"campaigns", campaigns()}, {"rigs", rigs()}} {
		fmt.Printf("%s: the tests of %d packages\n", part.name, len(part.packages))
		args := []string{"test", "-count=1", "-timeout=2h", "-skip", more, "-covermode=atomic",
			"-coverpkg=" + strings.Join(covered, ","),
			"-coverprofile=" + filepath.Join(dir, part.name)}
		for _, pkg := range part.packages {
			args = append(args, "./"+pkg)
		}
		command := exec.CommandContext(ctx, "go", args...)
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
		began := time.Now()
		if err := command.Run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		used := command.ProcessState
		fmt.Printf("%s took %s and %.1f minutes of CPU\n", part.name, time.Since(began).Round(time.Second),
			(used.UserTime() + used.SystemTime()).Minutes())
	}
	return nil
}

// read returns how often each point was reached, by the profiles that match a pattern.
func read(points []point, pattern string) ([]int, error) {
	profiles, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	if len(profiles) == 0 {
		return nil, fmt.Errorf("there is no profile %s", pattern)
	}
	var all []block
	for _, profile := range profiles {
		text, err := os.ReadFile(profile)
		if err != nil {
			return nil, err
		}
		some, err := blocks(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", profile, err)
		}
		all = append(all, some...)
	}
	return counts(points, all), nil
}
