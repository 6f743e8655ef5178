package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/trace"
)

// TestASlowHookStopsNothing checks that a hook that does not return delays no grant, and that no
// event is lost as long as the queue has room.
func TestASlowHookStopsNothing(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		let := make(chan struct{})
		var told atomic.Int64
		var log lines
		f := startFleet(t, 3, func(c *mortise.Config) {
			c.Hooks = &mortise.Hooks{Lost: func(mortise.LockEvent) { <-let; told.Add(1) },
				Node: func(mortise.NodeEvent) {}}
			if c.Name == "node-0" {
				c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			}
		})
		const locks = trace.MostWaiting + 500
		for i := range locks {
			f.acquire(0, mortise.Request{Key: fmt.Sprint(i), MaxHold: time.Second})
		}
		time.Sleep(2 * time.Second)
		began := time.Now()
		unlock(t, f.lock(0, "k"))
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("a lock took %v", took)
		}
		if n := f.nodes[0].Status().HooksDropped; n < 400 || n > 600 {
			t.Errorf("%d dropped", n)
		}
		close(let)
		synctest.Wait()
		if n := told.Load(); n < locks-600 || n > locks-400 {
			t.Errorf("%d told", n)
		}
		if n := len(log.matching("too slow")); n != 1 {
			t.Errorf("%d lines about it:\n%q", n, log.matching(""))
		}
	})
}

func TestCloseGivesUpOnAHook(t *testing.T) {
	bubble(t, func(t *testing.T) {
		let := make(chan struct{})
		f := newFleet(t)
		c := f.config(0, 1)
		c.Hooks = &mortise.Hooks{Lost: func(mortise.LockEvent) { <-let }}
		n := f.start(0, c)
		f.ready()
		f.acquire(0, mortise.Request{Key: "a", MaxHold: time.Second})
		f.acquire(0, mortise.Request{Key: "b", MaxHold: time.Second})
		time.Sleep(2 * time.Second)
		began := time.Now()
		if err := n.Close(); !errors.Is(err, trace.ErrHangs) {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took < trace.CloseLimit || took > 2*trace.CloseLimit {
			t.Errorf("it took %v", took)
		}
		close(let)
		f.nodes[0] = nil
	})
}

func TestHooksThatPanicAreCalledAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log lines
		var calls sync.Map
		bad := func(hook string) {
			n, _ := calls.LoadOrStore(hook, new(atomic.Int64))
			if n.(*atomic.Int64).Add(1)%2 == 0 && hook == "lost" {
				runtime.Goexit()
			}
			panic("no")
		}
		f := startFleet(t, 1, func(c *mortise.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			c.Hooks = &mortise.Hooks{
				Acquired: func(context.Context, mortise.LockEvent) any { bad("acquired"); return nil },
				Unlocked: func(context.Context, mortise.LockEvent) { bad("unlocked") },
				Lost:     func(mortise.LockEvent) { bad("lost") },
				Node:     func(e mortise.NodeEvent) { bad(string(e.State)) },
			}
		})
		for i := range 4 {
			unlock(t, f.lock(0, "k"))
			f.acquire(0, mortise.Request{Key: fmt.Sprint(i), MaxHold: time.Second})
		}
		time.Sleep(10 * time.Second)
		unlock(t, f.lock(0, "k"))
		f.close(0)
		for _, c := range []struct {
			hook string
			want int64
		}{{"acquired", 9}, {"unlocked", 5}, {"lost", 4}, {string(mortise.RenewalAcknowledged), 5},
			{string(mortise.SessionOpened), 1}, {string(mortise.SessionStopped), 1}, {string(mortise.LeaseSafe), 1},
			{string(mortise.LeaderNew), 1}, {string(mortise.NodeAvailable), 1}} {
			n, ok := calls.Load(c.hook)
			if !ok || n.(*atomic.Int64).Load() < c.want {
				t.Errorf("%s was called %v times, want %d", c.hook, n, c.want)
			}
		}
		if n := len(log.matching("a function of Config.Hooks panicked")); n != 1 {
			t.Errorf("%d lines about it in ten seconds:\n%q", n, log.matching(""))
		}
	})
}

// A leak is reported with a renewal of the lease, so the lease is short.
func TestALeakedLockIsFound(t *testing.T) {
	leaks := make(chan mortise.LockEvent, 10)
	n, err := mortise.Start(t.Context(), mortise.Config{
		SessionTTL: time.Second, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Hooks: &mortise.Hooks{Acquired: func(context.Context, mortise.LockEvent) any { return "tag" },
			Leaked: func(e mortise.LockEvent) { leaks <- e }},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	token := forget(t, n)
	kept, err := n.Lock(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for len(leaks) < 3 && time.Now().Before(deadline) {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	for range 3 {
		runtime.GC() // another collection must find no more leaked locks
	}
	time.Sleep(time.Second) // more than a renewal
	if len(leaks) != 3 {
		t.Fatalf("%d leaks were told, want those of \"leaked\", of \"own\" and of the second handle of \"entered\"",
			len(leaks))
	}
	byKey := map[string]mortise.LockEvent{}
	for range 3 {
		e := <-leaks
		byKey[e.Key] = e
	}
	if e := byKey["leaked"]; e.Outcome != "" || e.Token != token || e.Held <= 0 || e.Tag != "tag" {
		t.Errorf("%+v", e)
	}
	for _, key := range []string{"leaked", "entered", "own"} {
		where := byKey[key].Where
		if !strings.Contains(where, "e2e.forget (") || !strings.Contains(where, "hookslow_test.go:") {
			t.Errorf("%s was acquired by forget, and Where is %q", key, where)
		}
	}
	var held *mortise.HeldError
	if _, err := n.TryLock(t.Context(), "leaked"); !errors.As(err, &held) || held.Token != token {
		t.Errorf("it stays held: %v", err)
	}
	unlock(t, kept)
}

// The garbage collector runs outside of all bubbles. If its goroutine used the node, the Go runtime
// would end this process.
func TestALeakInABubbleIsFound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		leaks := make(chan mortise.LockEvent, 10)
		f := startFleet(t, 1, func(c *mortise.Config) {
			c.Hooks = &mortise.Hooks{Leaked: func(e mortise.LockEvent) { leaks <- e }}
		})
		forget(t, f.nodes[0].Node)
		for i := 0; len(leaks) < 3 && i < 10_000; i++ {
			runtime.GC()
			time.Sleep(time.Second) // fake; a renewal reports the leaks that are found
		}
		if len(leaks) != 3 {
			t.Errorf("%d leaks were reported, want 3", len(leaks))
		}
		f.unjudged = true // the leaked locks are not unlocked
	})
}

//go:noinline
func forget(t *testing.T, n *mortise.Node) mortise.Token {
	l, err := n.Lock(t.Context(), "leaked")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		one, err := n.Lock(t.Context(), fmt.Sprint("unlocked", i))
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, one)
	}
	lost, err := n.Acquire(t.Context(), mortise.Request{Key: "lost", MaxHold: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	<-lost.Done()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	outer, err := n.Lock(ctx, "entered")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Lock(outer.Context(ctx), "entered"); err != nil {
		t.Fatal(err)
	}
	unlock(t, outer)
	own, err := n.NewSession(t.Context(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.Lock(t.Context(), "own"); err != nil {
		t.Fatal(err)
	}
	return l.Token()
}

// In TestAWatchedHandleMayEndAtOnce MaxHold ends before Acquire has returned. The race detector
// reports the use of an incomplete handle.
func TestAWatchedHandleMayEndAtOnce(t *testing.T) {
	n, err := mortise.Start(t.Context(), mortise.Config{Logger: slog.New(slog.DiscardHandler),
		Hooks: &mortise.Hooks{Leaked: func(mortise.LockEvent) {}}})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	outer, err := n.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	ctx := outer.Context(t.Context())
	for range 200 {
		inner, err := n.Acquire(ctx, mortise.Request{Key: "k", MaxHold: time.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		<-inner.Done()
		if err := inner.Err(); !errors.Is(err, mortise.ErrLost) {
			t.Fatalf("MaxHold is over, and Err is %v", err)
		}
	}
	unlock(t, outer)
}

// TestWhatHooksOfLocksCost checks the allocations that the comments of Hooks state.
func TestWhatHooksOfLocksCost(t *testing.T) {
	slow.UnderRace(t)
	if underRace {
		t.Skip("the race detector allocates too")
	}
	cost := func(h *mortise.Hooks) float64 {
		n, err := mortise.Start(t.Context(), mortise.Config{Logger: slog.New(slog.DiscardHandler), Hooks: h})
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		return testing.AllocsPerRun(2000, func() {
			l, err := n.Lock(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			unlock(t, l)
		})
	}
	without := cost(nil)
	three := cost(&mortise.Hooks{
		Acquired: func(context.Context, mortise.LockEvent) any { return nil },
		Unlocked: func(context.Context, mortise.LockEvent) {},
		Lost:     func(mortise.LockEvent) {},
	})
	leaked := cost(&mortise.Hooks{Leaked: func(mortise.LockEvent) {}})
	t.Logf("allocations for each lock: %v without hooks, %v with three, %v with Leaked", without, three, leaked)
	if three > without+4 || leaked > without+12 {
		t.Error("Hooks promises four more for three hooks, and twelve for Leaked")
	}
}
