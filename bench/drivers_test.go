package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Callers of all instances must never hold one key at the same time.
func TestDriversLockAndExclude(t *testing.T) {
	for _, p := range peers() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			if why := p.Missing(); why != "" {
				t.Skipf("*** SKIPPED: %s: %s ***", p.Name, why)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			// not t.TempDir, because PostgreSQL runs as another user, which may not read that
			// directory
			dir, err := os.MkdirTemp("", "mortise-bench-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			cluster, err := p.Open(ctx, memberDir(dir, 0))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := cluster.Close(); err != nil {
					t.Error(err)
				}
			}()
			if v := cluster.Version(); v == "" || v == "unknown" {
				t.Errorf("the version is %q", v)
			}
			if n := len(cluster.Instances()); n != membersOf {
				t.Fatalf("%d instances", n)
			}
			if p.Kind == "wire" { // no lock
				return
			}
			exclude(t, ctx, cluster)
			if p.Member != nil { // the lock of go-zookeeper, for example, has no context
				giveUp(t, ctx, cluster)
			}
		})
	}
}

// exclude fails the test if two of six callers hold one key at the same time, or if a held lock
// blocks a call for another key.
func exclude(t *testing.T, ctx context.Context, cluster Cluster) {
	callers, err := callersOf(ctx, cluster, 6, true)
	if err != nil {
		t.Fatal(err)
	}
	var inside, most, turns atomic.Int32
	err = together(len(callers), func(i int) error {
		for range 3 {
			hold, err := callers[i].Lock(ctx, "k")
			if err != nil {
				return err
			}
			most.Store(max(most.Load(), inside.Add(1)))
			time.Sleep(time.Millisecond) // gives another caller time to lock the key
			most.Store(max(most.Load(), inside.Add(-1)+1))
			turns.Add(1)
			if err := hold.Unlock(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || turns.Load() != 18 || most.Load() != 1 {
		t.Fatalf("%d turns, up to %d at once: %v", turns.Load(), most.Load(), err)
	}
	a, err := callers[0].Lock(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := callers[1].Lock(ctx, "b")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Unlock(ctx); err != nil {
		t.Error(err)
	}
	if err := b.Unlock(ctx); err != nil {
		t.Error(err)
	}
}

// giveUp fails the test if a waiter ignores the end of its context, or gets the key after that.
func giveUp(t *testing.T, ctx context.Context, cluster Cluster) {
	callers, err := callersOf(ctx, cluster, 2, true)
	if err != nil {
		t.Fatal(err)
	}
	hold, err := callers[0].Lock(ctx, "c")
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := callers[1].Lock(short, "c"); err == nil || ctx.Err() != nil {
		t.Errorf("a waiter whose context ends says %v", err)
	}
	if err := hold.Unlock(ctx); err != nil {
		t.Error(err)
	}
	if hold, err = callers[0].Lock(ctx, "c"); err != nil {
		t.Fatal(err)
	}
	if err := hold.Unlock(ctx); err != nil {
		t.Error(err)
	}
}

// broken is a peer that grants every request immediately.
type broken struct{}

func (broken) Instances() []Instance                        { return []Instance{broken{}, broken{}, broken{}} }
func (broken) Version() string                              { return "0" }
func (broken) Close() error                                 { return nil }
func (broken) Caller(context.Context, bool) (Locker, error) { return broken{}, nil }
func (broken) Lock(context.Context, string) (Hold, error)   { return broken{}, nil }
func (broken) Unlock(context.Context) error                 { return nil }

func TestWorkloadsNoticeTwoInside(t *testing.T) {
	r := &Run{Cluster: broken{}, Duration: 100 * time.Millisecond, Quick: true}
	for _, name := range []string{"handover64", "local64", "zipf", "mostly", "waiters"} {
		w, _ := workloadNamed(name)
		var err error
		// repeat the workload, because two callers hold the key at the same instant only if two
		// cores are free
		for tries := 0; err == nil && tries < 20; tries++ {
			_, err = w.Run(t.Context(), r)
		}
		if err == nil || !strings.Contains(err.Error(), "at once") {
			t.Errorf("%s says %v", name, err)
		}
	}
}

// TestMemberAnswers checks the commands to a member process of the workload kill, without starting
// a process.
func TestMemberAnswers(t *testing.T) {
	p, _ := peerNamed("mortise")
	addresses, err := freeAddresses(membersOf * addressesEach)
	if err != nil {
		t.Fatal(err)
	}
	outs := make([]bytes.Buffer, membersOf)
	ins := make([]*io.PipeWriter, membersOf)
	ended := make(chan error, 1)
	readers := make([]io.Reader, membersOf)
	for i := range ins {
		readers[i], ins[i] = io.Pipe()
	}
	go func() {
		ended <- together(membersOf, func(i int) error {
			return serveMember(t.Context(), p, t.TempDir(), addresses, i, readers[i], &outs[i])
		})
	}()
	for _, question := range []string{"ready", "lock k", "what"} {
		for _, in := range ins {
			if _, err := io.WriteString(in, question+"\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, in := range ins {
		_ = in.Close()
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for i := range outs {
		if want := "ready\nlocked\nerror: what is \"what\"?\n"; outs[i].String() != want {
			t.Errorf("member %d answers %q", i, outs[i].String())
		}
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	if h.quantile(0.5) != 0 {
		t.Error("an empty one has a median")
	}
	for i := range 1000 {
		h.add(time.Duration(i) * time.Microsecond)
	}
	for q, want := range map[float64]time.Duration{0: 0, 0.5: 500 * time.Microsecond, 0.99: 990 * time.Microsecond} {
		if got := h.quantile(q); math.Abs(float64(got-want)) > 0.03*float64(want) {
			t.Errorf("the %v quantile is %v, want about %v", q, got, want)
		}
	}
	for d := time.Duration(1); d < time.Hour; d = d*5/4 + 1 {
		if got := middle(bucketOf(uint64(d))); math.Abs(float64(got-d)) > 0.032*float64(d) {
			t.Errorf("%v is counted as %v", d, got)
		}
	}
}

func TestEveryPeerAndWorkloadHasItsOwnName(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range peers() {
		if seen[p.Name] || p.Promise == "" || filepath.Base(p.Name) != p.Name {
			t.Errorf("peer %q", p.Name)
		}
		seen[p.Name] = true
		for w := range p.Lacks {
			if found, ok := workloadNamed(w); !ok && w != "idle" {
				t.Errorf("%s lacks %q, which is none: %v", p.Name, w, found)
			}
		}
	}
	for _, g := range goals() {
		for _, name := range []string{g.ours, g.theirs} {
			if _, ok := peerNamed(name); !ok && name != "" {
				t.Errorf("goal %q is about peer %q", g.about, name)
			}
		}
		if _, ok := workloadNamed(g.workload); !ok {
			t.Errorf("goal %q is about workload %q", g.about, g.workload)
		}
	}
}
