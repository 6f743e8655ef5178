package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const waitForQuiet = time.Minute

func rounds(ctx context.Context, o options, progress io.Writer) (Record, error) {
	self, err := os.Executable()
	if err != nil {
		return Record{}, err
	}
	dir, err := os.MkdirTemp(o.dir, "mortise-bench-")
	if err != nil {
		return Record{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	_ = os.Chmod(dir, 0o711) // PostgreSQL runs as another user and needs access to a directory below dir
	record := Record{Machine: look(dir), Rounds: o.rounds, Duration: o.duration, Quick: o.quick}
	fmt.Fprintf(progress, "waiting up to %v until others leave the machine alone\n", waitForQuiet)
	record.Machine.Quiet, record.Machine.Busy, record.Machine.Waited = awaitQuiet(waitForQuiet)
	if !record.Machine.Quiet {
		record.warn(progress, fmt.Sprintf("the machine was not quiet: when the benchmark began, after %v of "+
			"waiting, others kept %.1f of its %d cores busy",
			record.Machine.Waited, record.Machine.Busy, record.Machine.Cores))
	}
	chosen := record.choose(o, progress)
	runs := map[[2]string][]Result{}
	for round := range o.rounds {
		for _, p := range chosen {
			c := childOptions{Peer: p.Name, Workloads: workloadsFor(p, o),
				Dir: filepath.Join(dir, fmt.Sprintf("%s-%d", p.Name, round)), Duration: o.duration, Quick: o.quick}
			if p.Kind == "mortise" {
				c.Profile = o.profile
			}
			if err := os.MkdirAll(c.Dir, 0o711); err != nil {
				return record, err
			}
			began := time.Now()
			child, err := runChild(ctx, self, c)
			if ctx.Err() != nil {
				return record, context.Cause(ctx)
			}
			if err != nil {
				record.warn(progress, fmt.Sprintf("%s, round %d: %v", p.Name, round+1, err))
				continue
			}
			for _, r := range child.Results {
				if r.Failed != "" && r.Failed != errTooLong.Error() {
					record.warn(progress, fmt.Sprintf("%s, %s, round %d: %s", p.Name, r.Workload, round+1, r.Failed))
				}
				runs[[2]string{r.Peer, r.Workload}] = append(runs[[2]string{r.Peer, r.Workload}], r)
			}
			record.versionOf(p.Name, child.Version)
			_ = os.RemoveAll(c.Dir)
			fmt.Fprintf(progress, "round %d of %d: %-16s %4.0f s, others %.2f cores\n", round+1, o.rounds, p.Name,
				time.Since(began).Seconds(), othersOf(child.Results))
		}
	}
	for _, p := range chosen {
		for _, w := range workloads() {
			if list := runs[[2]string{p.Name, w.Name}]; len(list) > 0 {
				record.Results = append(record.Results, median(list))
			}
		}
	}
	return record, nil
}

func othersOf(results []Result) float64 {
	if len(results) == 0 {
		return 0
	}
	return results[0].Others
}

func (r *Record) warn(progress io.Writer, text string) {
	r.Warnings = append(r.Warnings, text)
	fmt.Fprintln(progress, "***", text)
}

func (r *Record) choose(o options, progress io.Writer) (chosen []Peer) {
	for _, p := range peers() {
		if len(o.peers) > 0 && !slices.Contains(o.peers, p.Name) {
			continue
		}
		missing := p.Missing()
		r.Peers = append(r.Peers, PeerRecord{Name: p.Name, Kind: p.Kind, Durable: p.Durable, Promise: p.Promise,
			Missing: missing, Lacks: p.Lacks})
		if missing != "" {
			fmt.Fprintf(progress, "*** SKIPPED: %s: %s (-install installs it)\n", p.Name, missing)
			continue
		}
		chosen = append(chosen, p)
	}
	return chosen
}

func (r *Record) versionOf(peer, version string) {
	for i := range r.Peers {
		if r.Peers[i].Name == peer && version != "" {
			r.Peers[i].Version = version
		}
	}
}

func workloadsFor(p Peer, o options) (names []string) {
	for _, w := range workloads() {
		if p.Lacks[w.Name] == "" && (w.Only == nil || w.Only(p)) && o.only.MatchString(w.Name) {
			names = append(names, w.Name)
		}
	}
	return names
}

func peerNamed(name string) (Peer, bool) {
	list := peers()
	i := slices.IndexFunc(list, func(p Peer) bool { return p.Name == name })
	if i < 0 {
		return Peer{}, false
	}
	return list[i], true
}

func peerNames() (names []string) {
	for _, p := range peers() {
		names = append(names, p.Name)
	}
	return names
}

func workloadNamed(name string) (Workload, bool) {
	list := workloads()
	i := slices.IndexFunc(list, func(w Workload) bool { return w.Name == name })
	if i < 0 {
		return Workload{}, false
	}
	return list[i], true
}

func install(ctx context.Context) error {
	if os.Getuid() != 0 {
		return errors.New("-install needs root")
	}
	for _, args := range [][]string{{"update"}, {"install", "-y", "--no-install-recommends", "redis-server",
		"zookeeper", "default-jre-headless", "postgresql"}} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		// in run level 1 the installation starts no service
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("apt-get %s: %w", args[0], err)
		}
	}
	return nil
}
