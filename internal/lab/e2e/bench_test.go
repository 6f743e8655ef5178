package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// realFleet starts three nodes over loopback TCP, in real time.
func realFleet(b testing.TB) []*mortise.Node {
	b.Helper()
	var addresses []string
	for range 3 {
		// Another process may take the port before the node binds it.
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		addresses = append(addresses, l.Addr().String())
		_ = l.Close()
	}
	var nodes []*mortise.Node
	for i, a := range addresses {
		n, err := mortise.Start(b.Context(), mortise.Config{
			Name: fmt.Sprintf("node-%d", i), Bind: a, Join: addresses, Replicas: 3,
			Secret: "msk1_a2bfff9c6250151c2086c5b899140b6f977fb1d9f63fc3653490576867a23bdeaa83737c", Grace: -1,
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = n.Close() })
		nodes = append(nodes, n)
	}
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	for _, n := range nodes {
		if err := n.Ready(ctx); err != nil {
			b.Fatal(err)
		}
	}
	return nodes
}

func BenchmarkFollower(b *testing.B) {
	for _, n := range realFleet(b) {
		if n.Status().Leading {
			continue
		}
		b.ReportAllocs()
		var locking time.Duration
		for b.Loop() {
			began := time.Now()
			l, err := n.Lock(b.Context(), "k")
			locking += time.Since(began)
			if err != nil {
				b.Fatal(err)
			}
			if err := l.Unlock(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(locking.Microseconds())/float64(b.N), "µs/Lock")
		return
	}
}

func BenchmarkCrowd(b *testing.B) {
	for _, callers := range []int{64, 1024} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { crowd(b, realFleet(b), callers) })
	}
}

func crowd(b *testing.B, nodes []*mortise.Node, callers int) {
	b.ReportAllocs()
	b.ResetTimer()
	runPairs(b, nodes, callers, b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
}

func runPairs(b testing.TB, nodes []*mortise.Node, callers, pairs int) {
	var left atomic.Int64
	left.Store(int64(pairs))
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			key, node := fmt.Sprintf("key/%d", i), nodes[i%len(nodes)]
			// With a shared context, callers would contend for its mutex.
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			for left.Add(-1) >= 0 {
				l, err := node.Lock(ctx, key)
				if err == nil {
					err = l.Unlock(ctx)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkSticky measures a lock that the same instance had last. Each caller has its own key.
func BenchmarkSticky(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			n, err := mortise.Start(b.Context(), mortise.Config{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = n.Close() })
			if err := n.Ready(b.Context()); err != nil {
				b.Fatal(err)
			}
			for i := range callers {
				if err := stickyPair(n, context.Background(), callerKey(i)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			var all sync.WaitGroup
			for i := range callers {
				all.Go(func() {
					key := callerKey(i)
					for range b.N / callers {
						if err := stickyPair(n, context.Background(), key); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
		})
	}
}

func callerKey(i int) string { return fmt.Sprintf("key/%d", i) }

func stickyPair(n *mortise.Node, ctx context.Context, key string) error {
	l, err := n.LockSticky(ctx, key, mortise.StickyOptions{})
	if err != nil {
		return err
	}
	return l.Unlock(ctx)
}

// BenchmarkHeldLocks measures the heap of a held lock: that of three replicas and of the handle.
func BenchmarkHeldLocks(b *testing.B) {
	nodes := realFleet(b)
	const locks = 100_000
	held := make([]*mortise.Lock, locks)
	keys := make([]string, locks)
	for i := range keys {
		keys[i] = fmt.Sprintf("held-%06d", i)
	}
	for b.Loop() {
		before := liveHeap()
		var next atomic.Int64
		var all sync.WaitGroup
		for range 1024 {
			all.Go(func() {
				for i := int(next.Add(1)) - 1; i < locks; i = int(next.Add(1)) - 1 {
					var err error
					if held[i], err = nodes[i%len(nodes)].Lock(b.Context(), keys[i]); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		b.ReportMetric(float64(liveHeap()-before)/locks, "B/lock")
		b.StopTimer()
		for _, l := range held {
			_ = l.UnlockSoon()
		}
		clear(held)
		b.StartTimer()
	}
}

// TestAllocationsOfAPair limits the allocations of all three nodes for a lock and its release. The
// limit is the figure of docs/SPEED.md plus a third.
func TestAllocationsOfAPair(t *testing.T) {
	slow.UnderRace(t)
	if underRace {
		t.Skip("the race detector allocates too")
	}
	nodes := realFleet(t)
	for _, run := range []struct {
		callers, pairs int
		most           float64
	}{{1, 2_000, 580}, {64, 25_000, 27}, {1024, 100_000, 8}} {
		runPairs(t, nodes, run.callers, 10*run.callers) // fills the pools of reused objects
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		runPairs(t, nodes, run.callers, run.pairs)
		runtime.ReadMemStats(&after)
		each := float64(after.Mallocs-before.Mallocs) / float64(run.pairs)
		t.Logf("%d callers: %.1f allocations for a pair", run.callers, each)
		if each > run.most {
			t.Errorf("%d callers: %.1f allocations for a pair, want at most %v", run.callers, each, run.most)
		}
	}
}
