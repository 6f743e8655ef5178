// Command sometimes checks that the campaigns reach the rare paths of the shells: the statements
// that refuse, turn away at a limit, drop a message, try again, or end a wait that took too long. A
// path that no campaign reaches is not tested by it, whatever the campaign says. The command finds
// these paths in the source, runs the campaigns with coverage, and prints how often each was
// reached. With -keep a run that was stopped resumes:
//
//	go run ./internal/lab/sometimes [-least N] [-v] [-keep DIR | -from DIR]
//
// The campaigns are the tests of whole nodes and of faulty disks. The command also runs the rigs,
// the tests that run one shell with the rest replaced. It fails if a path was reached fewer than
// -least times by the campaigns and exceptions.txt does not give a reason, or if that says that a
// rig reaches the path, and none does. The product contains no counters.
//
// A process of a test of cmd/mortise counts if it ends by itself. Package whole does not count,
// since Go's cover tool cannot read the files of an overlay.
package main

import (
	"context"
	"errors"
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
	keep := flag.String("keep", "", "keep the profiles in this directory, and measure only what it lacks")
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

// measure runs the campaigns and the rigs, and writes a profile of each package into a directory.
// It leaves out the packages whose profile is there, so that an interrupted run can be continued.
// It does not use the race detector: the counters of the profiles order memory accesses, and would
// hide races.
func measure(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var covered []string
	for _, s := range shells {
		covered = append(covered, "./"+s.dir)
	}
	var failed []error
	for _, part := range []struct {
		name     string
		packages []string
	}{{"campaigns", campaigns()}, {"rigs", rigs()}} {
		var used time.Duration
		for _, pkg := range part.packages {
			profile := filepath.Join(dir, part.name+"-"+strings.ReplaceAll(pkg, "/", "-"))
			if _, err := os.Stat(profile); err == nil {
				fmt.Println("measured before:", pkg)
				continue
			}
			fmt.Println("measuring:", pkg)
			command := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-timeout=2h", "-skip", more,
				"-covermode=atomic", "-coverpkg="+strings.Join(covered, ","), "-coverprofile="+profile, "./"+pkg)
			command.Stdout, command.Stderr = os.Stdout, os.Stderr
			if err := command.Run(); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", pkg, errors.Join(err, os.RemoveAll(profile))))
			}
			if command.ProcessState != nil {
				used += command.ProcessState.UserTime() + command.ProcessState.SystemTime()
			}
		}
		fmt.Printf("%s took %.1f minutes of CPU\n", part.name, used.Minutes())
	}
	return errors.Join(failed...)
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
