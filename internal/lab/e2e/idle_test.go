package e2e

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

func bytesPerRun(f func()) uint64 {
	const runs = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / runs
}

// idle adds n idle sessions to the state of the group that node leads. They may exceed the limit
// for clients.
func idle(t testing.TB, node *node, from, n int) {
	r := node.Replica()
	named := r.Settings().Named()
	for i := from; i < from+n; i++ {
		id := nodeidtest.ID(uint64(i + 1))
		record, _ := json.Marshal(replica.Record{Instance: id.String(), Name: fmt.Sprint("idle-", i), Rules: 1,
			Settings: named})
		open := lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{9, byte(i), byte(i >> 8), byte(i >> 16)},
			Record: record, Opener: lockfsm.Opener{Instance: id}}
		for !r.Log.Propose(r.Role().Term, open.Append(nil)) {
			time.Sleep(time.Millisecond)
		}
	}
	for r.SessionIndex.Members() < from+n { // applied, and indexed
		if time.Sleep(time.Millisecond); t.Context().Err() != nil {
			t.Fatal("the sessions are not there")
		}
	}
}

// TestALockCostsTheSameBesideIdleSessions checks that the allocations of a lock on the leader do
// not grow with the number of idle sessions.
func TestALockCostsTheSameBesideIdleSessions(t *testing.T) {
	slow.UnderRace(t)
	node := leaderAlone(t)
	pair := func() { unlock(t, mustLock(t, node)) }
	cost := func() (uint64, time.Duration) {
		for range 100 {
			pair()
		}
		began := time.Now()
		bytes := bytesPerRun(pair)
		return bytes, time.Since(began) / 1000
	}
	idle(t, node, 0, 5000)
	one, took := cost()
	idle(t, node, 5000, 5000)
	two, later := cost()
	if t.Logf("a lock and its unlock: %d bytes and %v beside 5,000 sessions, %d bytes and %v beside 10,000", one,
		took, two, later); two > one+one/4 {
		t.Errorf("a lock allocates %d bytes beside 5,000 sessions and %d beside 10,000", one, two)
	}
}

// leaderAlone starts the only founder of a group. The sessions of the group last for ten minutes.
func leaderAlone(t testing.TB) *node {
	// Another process may take the port before the node binds it.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	node, err := start(t.Context(), mortise.Config{
		Name: "a", Bind: addr, Join: []string{addr}, Founders: []string{"a"}, SessionTTL: 10 * time.Minute, Grace: -1,
		Logger: slog.New(slog.DiscardHandler),
	}, outside.World{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	if err := node.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return node
}

func mustLock(t testing.TB, node *node) *mortise.Lock {
	lock, err := node.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func BenchmarkLockBesideIdleSessions(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			node := leaderAlone(b)
			idle(b, node, 0, n)
			b.ReportAllocs()
			for b.Loop() {
				if err := mustLock(b, node).Unlock(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMembersPage(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			node := leaderAlone(b)
			idle(b, node, 0, n)
			b.ReportAllocs()
			conn, err := node.Leader()
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				page, err := queries.Ask(b.Context(), query.NewQueryClient(conn), query.QueryClient.Members,
					&query.PageRequest{})
				if err != nil || len(page.Members) < 99 {
					b.Fatal(len(page.Members), err)
				}
			}
		})
	}
}
