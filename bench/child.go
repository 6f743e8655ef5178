package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"
)

// A child is this program, started as a separate process to measure one peer, so that the heap and
// the goroutines of one peer do not slow down the next peer.

type childResult struct {
	Version string
	Results []Result
}

type childOptions struct {
	Peer      string
	Workloads []string
	Dir       string
	Duration  time.Duration
	Quick     bool
	Profile   string // the directory, or ""
}

// runChild runs program, which is this program or another build of it, as a child, and waits until
// it has ended. The field Others of the results is the number of cores that all other processes
// used.
func runChild(ctx context.Context, program string, o childOptions) (childResult, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return childResult{}, err
	}
	cmd := exec.CommandContext(ctx, program, "-child", string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	meter := newOthersMeter()
	if err := cmd.Run(); err != nil {
		return childResult{}, fmt.Errorf("%w: %s", err, firstLines(log.Bytes()))
	}
	others := meter.cores()
	var c childResult
	if err := json.Unmarshal(out.Bytes(), &c); err != nil {
		return childResult{}, fmt.Errorf("%w: %s", err, firstLines(out.Bytes()))
	}
	for i := range c.Results {
		c.Results[i].Others, c.Results[i].OthersMost = others, others
	}
	return c, nil
}

func firstLines(text []byte) []byte { return text[:min(len(text), 2000)] }

func measure(ctx context.Context, o childOptions) (c childResult, err error) {
	peer, ok := peerNamed(o.Peer)
	if !ok {
		return c, fmt.Errorf("there is no peer %q", o.Peer)
	}
	r := &Run{Peer: peer, Dir: o.Dir, Duration: o.Duration, Quick: o.Quick}
	var together, alone []Workload
	for _, name := range o.Workloads {
		if w, ok := workloadNamed(name); ok && w.Alone {
			alone = append(alone, w)
		} else if ok {
			together = append(together, w)
		}
	}
	if len(together) > 0 {
		opening, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if r.Cluster, err = peer.Open(opening, o.Dir); err != nil {
			return c, fmt.Errorf("open %s: %w", peer.Name, err)
		}
		c.Version = r.Cluster.Version()
		for _, w := range together {
			c.Results = append(c.Results, profiled(ctx, w, r, o.Profile))
		}
		if err := r.Cluster.Close(); err != nil {
			return c, fmt.Errorf("close %s: %w", peer.Name, err)
		}
	}
	for _, w := range alone {
		c.Results = append(c.Results, profiled(ctx, w, r, o.Profile))
	}
	return c, nil
}

func profiled(ctx context.Context, w Workload, r *Run, dir string) Result {
	stop := func() error { return nil }
	var err error
	if dir != "" {
		stop, err = startProfiles(filepath.Join(dir, r.Peer.Name+"-"+w.Name))
	}
	var result Result
	if err == nil {
		result, err = w.Run(ctx, r)
	}
	if err := errors.Join(err, stop()); err != nil {
		result.Failed = oneLine(err)
	}
	result.Peer, result.Workload, result.Runs = r.Peer.Name, w.Name, 1
	return result
}

func oneLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if len(text) > 160 {
		text = text[:160] + "..."
	}
	return text
}

// startProfiles writes base.cpu, base.allocs.before and base.allocs. To show the allocations,
// compare the last two with go tool pprof -base.
func startProfiles(base string) (stop func() error, err error) {
	cpu, err := os.Create(base + ".cpu")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(writeAllocs(base+".allocs.before"), pprof.StartCPUProfile(cpu)); err != nil {
		return nil, errors.Join(err, cpu.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return errors.Join(cpu.Close(), writeAllocs(base+".allocs"))
	}, nil
}

func writeAllocs(path string) error {
	runtime.GC() // the profile shows the state at the last collection
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
