package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	rtrace "runtime/trace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/exp/trace"
)

// sayWindow marks the begin and the end of the time that counts in the trace of a crowd.
const sayWindow = "bench-window"

const (
	busyShown = 0.01 // of the time: a goroutine that ran less has no row
	maxBusy   = 30   // rows of goroutines
	// saturated is the share of the time from which on a goroutine is named as the limit. Processors
	// are the limit if goroutines use this share of all of them.
	saturated, processorsBusy = 0.5, 0.8
)

// crowdBudget prints, for each chosen mortise, the share of the time for which each goroutine of
// the three instances runs under o.callers callers, the busiest first, and one last line that names
// the limit. Each caller has a key of its own, and each call is on the next instance, as in the
// workload parallel1024.
func crowdBudget(ctx context.Context, o options, progress, out io.Writer) error {
	dir, err := os.MkdirTemp(o.dir, "mortise-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var all Record
	for _, p := range all.choose(o, progress) {
		if p.Kind != "mortise" {
			continue
		}
		fmt.Fprintf(progress, "%s: %d callers for %v\n", p.Name, o.callers, o.duration)
		b, err := crowdBusy(ctx, p, filepath.Join(dir, p.Name), o.callers, o.duration)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		if err := b.write(out, p.Name, o.callers); err != nil {
			return err
		}
	}
	return nil
}

func crowdBusy(ctx context.Context, p Peer, dir string, callers int, duration time.Duration) (b occupancy, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return b, err
	}
	recorded, err := os.Create(filepath.Join(dir, "trace"))
	if err != nil {
		return b, err
	}
	defer recorded.Close()
	if err := rtrace.Start(recorded); err != nil {
		return b, err
	}
	stop := sync.OnceFunc(rtrace.Stop)
	defer stop()
	meter := newOthersMeter()
	roles, result, err := runCrowd(ctx, p, dir, callers, duration)
	if err != nil {
		return b, err
	}
	b.others = meter.cores()
	stop()
	if _, err := recorded.Seek(0, io.SeekStart); err != nil {
		return b, err
	}
	if err := b.read(recorded, roles); err != nil {
		return b, err
	}
	b.rate, b.cores = result.Rate, result.Rate*result.CPU.Seconds()
	b.processors = runtime.GOMAXPROCS(0)
	return b, nil
}

// runCrowd runs callers on three new members. In the trace it says which goroutines belong to a
// member, and when the time that counts begins and ends.
func runCrowd(ctx context.Context, p Peer, dir string, callers int, duration time.Duration) (roles []string,
	r Result, err error) {
	cluster, list, err := openTraced(ctx, p, dir)
	if err != nil {
		return nil, r, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	ended := make(chan error, 1)
	go func() {
		var err error
		r, err = parallel(callers)(ctx, &Run{Peer: p, Cluster: cluster, Dir: dir, Duration: duration + time.Second})
		ended <- err
	}()
	time.Sleep(time.Second) // warm-up
	rtrace.Log(ctx, sayWindow, "begin")
	time.Sleep(duration)
	rtrace.Log(ctx, sayWindow, "end")
	if err := <-ended; err != nil {
		return nil, r, err
	}
	for _, m := range list {
		roles = append(roles, map[bool]string{true: "leader", false: "follower"}[m.Leads()])
	}
	return roles, r, nil
}

// occupancy is what the goroutines do in the time that counts.
type occupancy struct {
	goroutines []busyRow     // of the three instances, the busiest first
	rest       time.Duration // for which all other goroutines ran together, without system calls
	window     time.Duration
	rate       float64 // pairs in a second
	cores      float64 // that this process used
	others     float64 // cores that other processes used
	processors int
}

// busyRow is one goroutine. ran includes called, the time of its system calls. queued is the time
// for which it was ready to run and had no processor.
type busyRow struct {
	role, name          string
	ran, called, queued time.Duration
}

// actor is a goroutine while the trace is read.
type actor struct {
	busyRow
	member int
	state  trace.GoState
	since  trace.Time
}

// read reads a trace of runCrowd. roles are those of the members.
func (b *occupancy) read(from io.Reader, roles []string) error {
	reader, err := trace.NewReader(from)
	if err != nil {
		return err
	}
	actors := map[trace.GoID]*actor{}
	find := func(id trace.GoID) *actor {
		if actors[id] == nil {
			actors[id] = &actor{member: noMember}
		}
		return actors[id]
	}
	var begin, end trace.Time
	for end == 0 {
		e, err := reader.ReadEvent()
		if errors.Is(err, io.EOF) {
			return errors.New("the trace has no begin or no end of the time that counts")
		}
		if err != nil {
			return err
		}
		switch e.Kind() {
		case trace.EventLog:
			switch l := e.Log(); {
			case l.Category == sayMember:
				find(e.Goroutine()).member, _ = strconv.Atoi(l.Message)
			case l.Category == sayWindow && l.Message == "begin":
				begin = e.Time()
			case l.Category == sayWindow && begin != 0:
				end = e.Time()
			}
		case trace.EventStateTransition:
			change := e.StateTransition()
			if change.Resource.Kind != trace.ResourceGoroutine {
				continue
			}
			a := find(change.Resource.Goroutine())
			from, to := change.Goroutine()
			if by := e.Goroutine(); from == trace.GoNotExist && by != trace.NoGoroutine {
				a.member = find(by).member
			}
			if to == trace.GoWaiting {
				a.name = outermost(change.Stack)
			}
			a.count(begin, e.Time())
			a.state, a.since = to, e.Time()
		}
	}
	b.window = end.Sub(begin)
	for _, a := range actors {
		if a.count(begin, end); a.member == noMember {
			b.rest += a.ran - a.called
			continue
		}
		a.role = roles[a.member]
		b.goroutines = append(b.goroutines, a.busyRow)
	}
	slices.SortFunc(b.goroutines, func(a, b busyRow) int {
		return cmp.Or(cmp.Compare(b.ran, a.ran), strings.Compare(a.role+a.name, b.role+b.name))
	})
	return nil
}

// count adds the time in the present state until now, as far as it is after begin. Zero means that
// the time that counts has not begun.
func (a *actor) count(begin, now trace.Time) {
	if begin == 0 || now < begin {
		return
	}
	took := now.Sub(max(a.since, begin))
	switch {
	case a.state == trace.GoSyscall:
		a.ran, a.called = a.ran+took, a.called+took
	case a.state == trace.GoRunning:
		a.ran += took
	case a.state == trace.GoRunnable:
		a.queued += took
	}
}

func (b *occupancy) share(d time.Duration) float64 { return float64(d) / float64(b.window) }

func (b *occupancy) write(out io.Writer, name string, callers int) error {
	var text strings.Builder
	fmt.Fprintf(&text, "## The goroutines of %s under %d callers\n\n%s pairs of Lock and Unlock a second, with the "+
		"trace, which makes them slower. Shares of the time\nof %v, GOMAXPROCS=%d:\n\n", name, callers, shortNumber(b.rate),
		b.window.Round(time.Millisecond), b.processors)
	var rows [][]string
	var others busyRow
	row := func(role, name string, r busyRow) {
		rows = append(rows, []string{role, name, percent(b.share(r.ran)), percent(b.share(r.called)),
			percent(b.share(r.queued))})
	}
	for i, g := range b.goroutines {
		if i < maxBusy && b.share(g.ran) >= busyShown {
			row(g.role, "`"+g.name+"`", g)
			continue
		}
		others.ran, others.called, others.queued = others.ran+g.ran, others.called+g.called, others.queued+g.queued
	}
	row("all three", "the others together", others)
	rows = append(rows, []string{"none", "callers and runtime together", percent(b.share(b.rest)), "", ""})
	writeTable(&text, []string{"instance", "goroutine", "runs", "of it in system calls", "waits for a processor"}, rows)
	text.WriteString(b.verdict() + "\n\n")
	_, err := io.WriteString(out, text.String())
	return err
}

// verdict names the limit in one line.
func (b *occupancy) verdict() string {
	use := fmt.Sprintf("GOMAXPROCS=%d, %.1f cores in use, %.1f by other processes", b.processors, b.cores, b.others)
	if len(b.goroutines) > 0 {
		if first := b.goroutines[0]; b.share(first.ran) > saturated {
			return fmt.Sprintf("the busiest is %s of the %s: it runs for %s of the time, for %s in system calls, which may "+
				"wait for the disk (%s)", first.name, first.role, percent(b.share(first.ran)), percent(b.share(first.called)), use)
		}
	}
	if b.cores+b.others >= processorsBusy*float64(b.processors) {
		return fmt.Sprintf("no goroutine is above %s: processors are the limit (%s)", percent(saturated), use)
	}
	return fmt.Sprintf("no goroutine is above %s, and processors are left (%s): take more callers", percent(saturated),
		use)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
