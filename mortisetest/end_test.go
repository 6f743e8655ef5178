package mortisetest

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// recorder is a testing.TB that records failures instead of failing.
type recorder struct {
	testing.TB // the real test, for methods that recorder does not override
	ctx        context.Context
	cancel     context.CancelFunc

	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func record(t testing.TB, test func(t testing.TB)) []string {
	ctx, cancel := context.WithCancel(context.Background())
	r := &recorder{TB: t, ctx: ctx, cancel: cancel}
	r.run(func() { test(r) })
	cancel()
	for _, f := range slices.Backward(r.cleanups) {
		r.run(f)
	}
	return r.failures
}

// run calls f on a goroutine that Fatalf can end, and waits until it has ended.
func (r *recorder) run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (r *recorder) Helper()                  {}
func (r *recorder) Name() string             { return "recorded" }
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Output() io.Writer        { return io.Discard }
func (r *recorder) Cleanup(f func())         { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

// wantFailures checks that there are as many failures as parts, and that each failure contains
// the part with the same index.
func wantFailures(t *testing.T, what string, got []string, parts ...string) {
	t.Helper()
	if len(got) != len(parts) {
		t.Fatalf("%s: %d failures, want %d: %q", what, len(got), len(parts), got)
	}
	for i, part := range parts {
		if !strings.Contains(got[i], part) {
			t.Errorf("%s: failed with %q, which does not say %q", what, got[i], part)
		}
	}
}

func TestWhatIsHeldAtTheEndFailsTheTest(t *testing.T) {
	slow.UnderRace(t)
	hold := func(o Options, end func(c *Cluster, l *mortise.Lock)) func(testing.TB) {
		return func(t testing.TB) {
			c := NewWith(t, 3, o)
			l, err := c.Node(1).Lock(t.Context(), "orders/42")
			if err != nil {
				t.Fatal(err)
			}
			end(c, l)
		}
	}
	for name, test := range map[string]struct {
		end     func(c *Cluster, l *mortise.Lock)
		options Options
		want    []string
	}{
		"held": {func(*Cluster, *mortise.Lock) {}, Options{},
			[]string{`node 1 holds 1 locks and 0 calls wait for one ("orders/42")`}},
		"held, as it may be": {func(*Cluster, *mortise.Lock) {}, Options{MayHold: true}, nil},
		"unlocked": {func(_ *Cluster, l *mortise.Lock) { _ = l.Unlock(context.Background()) }, Options{},
			nil},
		"about to be": {func(_ *Cluster, l *mortise.Lock) {
			time.AfterFunc(time.Second/2,
				func() { _ = l.UnlockSoon() })
		}, Options{}, nil},
		"lost":   {func(c *Cluster, _ *mortise.Lock) { c.Lose(1) }, Options{}, nil},
		"killed": {func(c *Cluster, _ *mortise.Lock) { c.Kill(1) }, Options{}, nil},
		"failed anyway": {func(c *Cluster, _ *mortise.Lock) { c.t.Errorf("its own") }, Options{},
			[]string{"its own"}},
		"a call waits": {func(c *Cluster, l *mortise.Lock) {
			go func() { _, _ = c.Node(2).Lock(context.Background(), "orders/42") }()
			c.Await("orders/42", 1, 1)
			c.Lose(1)
			c.AwaitHolder("orders/42", 2)
			go func() { _, _ = c.Node(0).Lock(context.Background(), "orders/42") }()
			c.Await("orders/42", 1, 1)
		}, Options{}, []string{`node 0 holds 0 locks and 1 calls wait for one ("orders/42"): `,
			`node 2 holds 1 locks and 0 calls wait for one ("orders/42"): `}},
		"each has its own keys": {func(c *Cluster, _ *mortise.Lock) {
			_, _ = c.Node(1).Lock(context.Background(), "a")
			_, _ = c.Node(2).Lock(context.Background(), "b")
		}, Options{}, []string{`node 1 holds 2 locks and 0 calls wait for one ("orders/42", "a"): `, `("b"): `}},
		"ten keys are named": {func(c *Cluster, _ *mortise.Lock) {
			for _, key := range "abcdefghijk" {
				_, _ = c.Node(1).Lock(context.Background(), string(key))
			}
		}, Options{}, []string{`12 locks and 0 calls wait for one ` +
			`("orders/42", "a", "b", "c", "d", "e", "f", "g", "h", "i"): `}},
		"a lost one stays taken": {func(c *Cluster, l *mortise.Lock) {
			_ = l.Unlock(context.Background())
			_, _ = c.Node(1).Acquire(context.Background(), mortise.Request{Key: "lost", LockDelay: time.Hour})
			c.Lose(1)
			_, _ = c.Node(1).Lock(context.Background(), "z")
		}, Options{}, []string{`node 1 holds 1 locks and 0 calls wait for one ("z"): `}},
		"cut off": {func(c *Cluster, _ *mortise.Lock) { c.Isolate(1) },
			configured(func(c *mortise.Config) { c.SessionTTL = time.Minute }),
			[]string{`node 1 holds 1 locks and 0 calls wait for one ("orders/42"): `}},
		"no leader": {func(c *Cluster, _ *mortise.Lock) { c.Kill(0); c.Kill(2) },
			configured(func(c *mortise.Config) { c.SessionTTL = time.Minute }),
			[]string{"node 1 holds 1 locks and 0 calls wait for one: "}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wantFailures(t, name, record(t, hold(test.options, test.end)), test.want...)
			})
		})
	}
}

func TestAGoroutineThatStaysFailsTheTest(t *testing.T) {
	slow.UnderRace(t)
	t.Parallel() // the test lasts at least 5 s, the value of settle
	stop := make(chan struct{})
	defer close(stop)
	New(t, 1) // the goroutines of this cluster must not fail the other cluster
	got := record(t, func(t testing.TB) {
		c := New(t, 1)
		pprof.Do(context.Background(), pprof.Labels(label, c.label), func(context.Context) {
			go func() { <-stop }()
		})
	})
	wantFailures(t, "a goroutine that stays", got, "TestAGoroutineThatStaysFailsTheTest")
}

func TestWhatDoesNotComeFailsTheTest(t *testing.T) {
	slow.UnderRace(t)
	for name, test := range map[string]struct {
		wait func(c *Cluster)
		want string
	}{
		"Await": {func(c *Cluster) { c.Await("k", 1, 2) },
			`"k" has 1 holders and 2 waiters (last seen: held by 0, 0 waiting)`},
		"AwaitHolder": {func(c *Cluster) { c.AwaitHolder("k", 1) }, `node 1 holds "k"`},
		"AwaitHolder, of a waiter": {func(c *Cluster) {
			l, _ := c.Node(0).Lock(context.Background(), "k")
			go func() { _, _ = c.Node(1).Lock(context.Background(), "k") }()
			c.Await("k", 1, 1)
			c.AwaitHolder("k", 1)
			_ = l.Unlock(context.Background())
		}, `node 1 holds "k" (last seen: held by 1, 1 waiting)`},
		"Until": {func(c *Cluster) { c.Until("pigs fly", func() bool { return false }) },
			"waited 10s in vain: pigs fly"},
		"Leader": {func(c *Cluster) { c.Isolate(0); c.Isolate(1); c.Leader() }, "a node leads the group"},
		"Ready":  {func(c *Cluster) { c.Isolate(1); time.Sleep(20 * time.Second); c.Ready() }, "node 1 is not ready"},
		"Follower": {func(c *Cluster) { c.Kill(c.Follower()); c.Pause(c.Follower()); c.Follower() },
			"a node leads the group"},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := record(t, func(t testing.TB) { test.wait(NewWith(t, 3, Options{Patience: 10 * time.Second})) })
			wantFailures(t, name, got, test.want)
		})
	}
}

func TestMistakesAreTold(t *testing.T) {
	for want, test := range map[string]func(testing.TB){
		"a cluster of 0 nodes: want 1 to 256":     func(t testing.TB) { New(t, 0) },
		"there is no node 1":                      func(t testing.TB) { New(t, 1).Node(1) },
		"node 0 is running: call Kill first":      func(t testing.TB) { New(t, 1).Start(0) },
		"Kill: node 0 is not running":             func(t testing.TB) { c := New(t, 1); c.Kill(0); c.Kill(0) },
		"Pause: node 0 is not running":            func(t testing.TB) { c := New(t, 1); c.Kill(0); c.Pause(0) },
		"Pause: node 0: paused is already true":   func(t testing.TB) { c := New(t, 1); c.Pause(0); c.Pause(0) },
		"Resume: node 0: paused is already false": func(t testing.TB) { New(t, 1).Resume(0) },
		"Leap by -1s":                             func(t testing.TB) { New(t, 1).Leap(0, -time.Second) },
		"Drift at -1":                             func(t testing.TB) { New(t, 1).Drift(0, -1) },
		"no node except the leader is running":    func(t testing.TB) { New(t, 1).Follower() },
		"Config.SessionTTL": func(t testing.TB) {
			NewWith(t, 1,
				configured(func(c *mortise.Config) { c.SessionTTL = 1 }))
		},
		"has set Bind, Advertise, Join or Jo": func(t testing.TB) {
			NewWith(t, 1,
				configured(func(c *mortise.Config) { c.Bind = ":0" }))
		},
	} {
		wantFailures(t, want, record(t, test), want)
	}
}

func configured(change func(c *mortise.Config)) Options {
	return Options{Configure: func(_ int, c *mortise.Config) { change(c) }}
}
