package mortise

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"
)

// realFleet starts three nodes over loopback TCP, on real time.
func realFleet(b *testing.B) []*Node {
	b.Helper()
	var addresses []string
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0") // a port of an outgoing connection: good enough for a benchmark
		if err != nil {
			b.Fatal(err)
		}
		addresses = append(addresses, l.Addr().String())
		_ = l.Close()
	}
	var nodes []*Node
	for i, a := range addresses {
		n, err := Start(b.Context(), Config{
			Name: fmt.Sprintf("node-%d", i), Bind: a, Join: addresses, Replicas: 3, Grace: -1, Logger: slog.New(slog.DiscardHandler),
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

// BenchmarkFollower is the uncontended Lock and Unlock of an instance that does not lead.
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
