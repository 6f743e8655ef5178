package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/outside"
)

func adopted(t *testing.T, n *node) {
	t.Helper()
	for ctx := brief(t); ; {
		if r := n.Replica(); r != nil {
			if g := r.Settings(); g != nil && g.SessionBytes == n.config.MaxSessionBytes &&
				g.GroupBytes == n.config.MaxGroupBytes {
				return
			}
		}
		select {
		case <-ctx.Done():
			t.Fatal("the group has not adopted the budgets")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func fillUp(t *testing.T, n *node, prefix string, value string) (held []*mortise.Lock, refused error) {
	t.Helper()
	for i := 0; ; i++ {
		l, err := n.Acquire(t.Context(), mortise.Request{Key: fmt.Sprintf("%s%06d", prefix, i), Value: value})
		if err != nil {
			return held, err
		}
		held = append(held, l)
	}
}

// TestBudgets fills the budgets of a session and of the group. Held locks must remain, and every
// Unlock must succeed and make room.
func TestBudgets(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, func(c *mortise.Config) { c.MaxSessionBytes, c.MaxGroupBytes = 1<<20, 2<<20 })
		adopted(t, f.nodes[f.leader()])
		n, other := f.nodes[0], f.nodes[1]
		value := strings.Repeat("v", 1000)
		held, err := fillUp(t, n, "a", value)
		wantIs(t, err, mortise.ErrNoRoom)
		if text := err.Error(); !strings.Contains(text, "session's budget of 1 MiB") ||
			!strings.Contains(text, "Config.MaxSessionBytes") {
			t.Errorf("%q does not name the session's budget", text)
		}
		if len(held) < 140 || len(held) > 160 { // each lock is charged 6,842 bytes
			t.Errorf("%d locks had room", len(held))
		}
		for _, l := range held {
			if err := l.Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := held[0].Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if held[0], err = n.Acquire(t.Context(), mortise.Request{Key: "again", Value: value}); err != nil {
			t.Fatal(err)
		}
		more, err := fillUp(t, other, "b", value)
		wantIs(t, err, mortise.ErrNoRoom)
		if text := err.Error(); !strings.Contains(text, "group's budget of 2 MiB") ||
			!strings.Contains(text, "Config.MaxGroupBytes") {
			t.Errorf("%q does not name the group's budget", text)
		}
		_, err = n.Put(t.Context(), "data", make([]byte, 4096), 0)
		wantIs(t, err, mortise.ErrNoRoom)
		if !strings.Contains(fmt.Sprint(err), "group's budget of 2 MiB") {
			t.Errorf("Put: %v does not name the group's budget", err)
		}
		// A part of the budget is reserved for sessions.
		s, err := other.NewSession(brief(t), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, l := range append(held, more...) {
			if err := l.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err = n.Put(t.Context(), "data", make([]byte, 4096), 0); err != nil {
			t.Fatal(err)
		}
	})
}

// peak measures the live heap until stop is called. stop returns the largest measured value.
func peak(t *testing.T) (stop func() uint64) {
	var most atomic.Uint64
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for {
			metrics.Read(live)
			most.Store(max(most.Load(), live[0].Value.Uint64()))
			select {
			case <-end:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return sync.OnceValue(func() uint64 { close(end); <-done; return most.Load() })
}

// TestBudgetBoundsAVoter fills an eighth of the default budget from one node, which also votes. The
// live heap must stay below an eighth of 512 MiB plus the size at rest. With MORTISE_BUDGETS=whole
// the test fills the whole budget.
func TestBudgetBoundsAVoter(t *testing.T) {
	slow.UnderRace(t)
	if underRace {
		t.Skip("it measures memory")
	}
	share := int64(8)
	if os.Getenv("MORTISE_BUDGETS") == "whole" {
		share = 1
	}
	most := 512 << 20 / share
	long := strings.Repeat("k", 500)
	value := strings.Repeat("v", 1024)
	for name, add := range map[string]func(ctx context.Context, n *node, i int) error{
		"150,000 locks": func(ctx context.Context, n *node, i int) error {
			_, err := n.Lock(ctx, fmt.Sprintf("orders/%09d", i))
			return err
		},
		"long keys and values": func(ctx context.Context, n *node, i int) error {
			_, err := n.Acquire(ctx, mortise.Request{Key: fmt.Sprintf("%s%06d", long, i), Value: value})
			return err
		},
		"locks with labels": func(ctx context.Context, n *node, i int) error {
			_, err := n.Acquire(ctx, mortise.Request{Key: fmt.Sprintf("%06d", i),
				Labels: map[string]string{"job": value[:200]}})
			return err
		},
		"data": func(ctx context.Context, n *node, i int) error {
			_, err := n.Put(ctx, fmt.Sprintf("%06d", i), make([]byte, 4096), 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := liveHeap()
			n, err := start(t.Context(), mortise.Config{
				Name: "a", Grace: -1, Logger: slog.New(slog.DiscardHandler), MaxSessionBytes: 256 << 20 / share,
				MaxGroupBytes: 256 << 20 / share,
			}, outside.World{})
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			if err := n.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			adopted(t, n)
			rest := liveHeap() - before
			stop := peak(t)
			var next atomic.Int64
			var all sync.WaitGroup
			var full, refused atomic.Int64
			for range 64 {
				all.Go(func() {
					for full.Load() == 0 {
						i := next.Add(1) - 1
						switch err := add(t.Context(), n, int(i)); {
						case errors.Is(err, mortise.ErrNoRoom):
							full.Store(1)
							refused.Add(1)
						case err != nil:
							t.Error(err)
							return
						case i > 500_000:
							t.Error("it is never full")
							return
						}
					}
				})
			}
			all.Wait()
			filled := liveHeap()
			top := stop()
			usage := n.Replica().Usage()
			var mem runtime.MemStats
			runtime.ReadMemStats(&mem)
			t.Logf("the heap has taken %d bytes from the system at most, for this and the tests before", mem.HeapSys)
			t.Logf("%d, %d bytes charged: live heap %d at rest, %d full, %d at most while it was filled",
				next.Load()-refused.Load(), usage.Bytes, rest, filled-before, int64(top)-before)
			if got := int64(top) - before; got > most+rest {
				t.Errorf("the live heap grew to %d bytes, want at most %d", got, most+rest)
			}
			if filled-before > most+rest {
				t.Errorf("%d bytes live when it is full, want at most %d", filled-before, most+rest)
			}
			runtime.KeepAlive(n)
		})
	}
}
