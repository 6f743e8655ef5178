package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/trace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// budget writes budget.md: what one Lock of each chosen mortise wakes, calls and
// runs in the three instances, and the way of one Lock from its call to its return, hop by hop.
// It reads them from the execution trace of the Go runtime, which itself takes time: compare the
// hops with each other, and with the same section of another build.
func budget(ctx context.Context, o options, progress, out io.Writer) error {
	dir, err := os.MkdirTemp(o.dir, "mortise-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	pairs := 2_000
	if o.quick {
		pairs = 200
	}
	m := look(dir)
	fmt.Fprintf(out, "## The budget of one Lock\n\n`go run . -budget` writes this section (bench/hops.go). %s: "+
		"%d cores\n(%s), %s. %d pairs of one caller; the trace makes each slower.\n", m.When, m.Cores, m.CPU, m.Go, pairs)
	var all Record
	for _, p := range all.choose(o, progress) {
		if p.Kind != "mortise" {
			continue
		}
		fmt.Fprintf(progress, "%s: %d pairs\n", p.Name, pairs)
		spent, err := spend(ctx, p, filepath.Join(dir, p.Name), pairs)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		if err := spent.write(out, p.Name); err != nil {
			return err
		}
	}
	return nil
}

// openTraced opens three new members, and says in the trace which goroutines belong to each of
// them.
func openTraced(ctx context.Context, p Peer, dir string) (Cluster, []Member, error) {
	list := make([]Member, membersOf)
	traced := p
	traced.Member = func(ctx context.Context, dir string, addresses []string, i int) (Member, error) {
		trace.Log(ctx, sayMember, strconv.Itoa(i)) // all goroutines of the member descend from this one
		m, err := p.Member(ctx, dir, addresses, i)
		list[i] = m
		return m, err
	}
	cluster, err := openMembers(ctx, traced, dir)
	return cluster, list, err
}

// spend takes and releases a lock so many times on an instance that does not lead, after as many
// pairs to warm up, and traces all.
func spend(ctx context.Context, p Peer, dir string, pairs int) (s spent, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var recorded bytes.Buffer
	if err := trace.Start(&recorded); err != nil {
		return s, err
	}
	stop := sync.OnceFunc(trace.Stop)
	defer stop()
	cluster, list, err := openTraced(ctx, p, dir)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	first := cluster.Instances()[0]
	caller, err := first.Caller(ctx, false)
	if err != nil {
		return s, err
	}
	roles := make([]string, membersOf)
	for i, m := range list {
		switch {
		case m == first:
			roles[i] = "follower that asks"
		case m.Leads():
			roles[i] = "leader"
		default:
			roles[i] = "other follower"
		}
	}
	var before, after runtime.MemStats
	for i := range 2 * pairs {
		if i == pairs {
			runtime.ReadMemStats(&before)
			s.bytes = -float64(loopbackBytes())
		}
		if err := tracedPair(ctx, caller, fmt.Sprintf("budget-%d", i%1000)); err != nil {
			return s, err
		}
	}
	runtime.ReadMemStats(&after)
	s.bytes = (s.bytes + float64(loopbackBytes())) / float64(pairs)
	s.allocs = float64(after.Mallocs-before.Mallocs) / float64(pairs)
	stop()
	r, err := readTrace(&recorded, pairs)
	if err != nil {
		return s, err
	}
	s.lines, s.ways, s.median = r.lines(roles), r.ways(roles), r.median()
	return s, nil
}

func tracedPair(ctx context.Context, caller Locker, key string) error {
	trace.Log(ctx, sayLock, lockCalled)
	hold, err := caller.Lock(ctx, key)
	if err != nil {
		return err
	}
	trace.Log(ctx, sayLock, lockHeld)
	err = hold.Unlock(ctx)
	trace.Log(ctx, sayLock, lockUnlocked)
	return err
}

// spent is what a pair of Lock and Unlock costs, and how a Lock comes about.
type spent struct {
	bytes, allocs float64 // over loopback, and of all three instances, for each pair
	median        time.Duration
	lines         []activity
	ways          []way
}

// activity is what goroutines that began with one function do for a pair in one instance.
type activity struct {
	role, name   string
	wakes, calls float64
	runs         time.Duration
}

func (a activity) row(name string) []string {
	return []string{a.role, name, shortNumber(a.wakes), shortNumber(a.calls), shortTime(a.runs)}
}

// way is a sequence of hops that some of the locks took.
type way struct {
	share float64 // a part of all locks
	hops  []hop   // with the median times
}

// hop is the time from the wake-up of a goroutine to the next wake-up on the way.
type hop struct {
	role, name string
	by         string // what woke it
	took       time.Duration
}

func (s spent) write(out io.Writer, name string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\nA pair of Lock and Unlock: %s allocations, %s over loopback. Median of "+
		"Lock: %s.\n\n", name, shortNumber(s.allocs), shortBytes(s.bytes), shortTime(s.median))
	var rows [][]string
	sums := map[string]activity{}
	for _, l := range s.lines {
		sum := sums[l.role]
		sums[l.role] = activity{role: l.role, wakes: sum.wakes + l.wakes, calls: sum.calls + l.calls, runs: sum.runs + l.runs}
		if l.wakes < leastShown && l.calls < leastShown {
			continue
		}
		rows = append(rows, l.row("`"+l.name+"`"))
	}
	for _, role := range slices.Sorted(maps.Keys(sums)) {
		rows = append(rows, sums[role].row("all"))
	}
	writeTable(&b, []string{"instance", "goroutine", "wake-ups", "system calls", "runs"}, rows)
	for _, w := range s.ways[:min(len(s.ways), waysShown)] {
		fmt.Fprintf(&b, "The way of %.0f %% of the locks, with median times:\n\n", 100*w.share)
		rows = nil
		for _, h := range w.hops {
			rows = append(rows, []string{h.role, "`" + h.name + "`", h.by, shortTime(h.took)})
		}
		writeTable(&b, []string{"instance", "goroutine", "woken by", "until the next"}, rows)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

const (
	leastShown = 0.1 // wake-ups or system calls for a pair
	waysShown  = 1
)
