package session

import (
	"fmt"
	"testing"

	"github.com/mortise-lock/mortise/lockfsm"

	"github.com/mortise-lock/mortise/internal/nodeid/nodeidtest"
)

// BenchmarkCores measures what both cores and the machine between them cost for one lock and its release, for a hundred keys in a frame.
func BenchmarkCores(b *testing.B) {
	t := &testing.T{}
	k := leadingBench(t)
	c := newClientBench(t)
	c.core.Rebind(c.now, []byte("me"), []Target{{nodeidtest.ID(9), "self"}})
	var released int
	exchange := func() {
		if c.core.WantsNonce() {
			c.core.GiveNonce(lockfsm.Nonce{1})
		}
		c.core.Tick(c.now)
		out := c.core.Flush(c.now)
		for _, o := range out.Outcomes {
			switch o.Kind {
			case OutcomeGranted:
				c.core.Release(c.now, o.Request)
			case OutcomeReleased:
				released++
			}
		}
		k.core.Receive(k.now, nodeidtest.ID(1), out.Renewals, out.Commands)
		k.pump()
		for _, r := range k.core.Replies() {
			for _, frame := range r.Frames {
				c.core.Receive(c.now, nodeidtest.ID(9), frame)
			}
			k.core.Replied(k.now, r.Peer, true)
		}
	}
	for range 10 {
		exchange()
	}
	if c.core.phase != Attached {
		b.Fatalf("phase %v", c.core.phase)
	}
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = fmt.Sprint("orders/", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, key := range keys {
			c.core.Acquire(c.now, &Request{Key: key})
		}
		for want := released + 100; released < want; {
			exchange()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(released), "ns/pair")
}
