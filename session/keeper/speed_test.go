package keeper

import (
	"fmt"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// BenchmarkCores measures a lock and its release in the client core, the keeper core and the
// state machine, with a hundred keys per frame.
func BenchmarkCores(b *testing.B) {
	t := &testing.T{}
	k := leadingBench(t)
	c := client.NewCore(k.now, benchTTL)
	c.Rebind(k.now, []byte("me"), []nodeid.Endpoint{{ID: nodeidtest.ID(9), Addr: "self"}})
	var released int
	exchange := func() {
		if c.WantsNonce() {
			c.GiveNonce(lockfsm.Nonce{1})
		}
		c.Tick(k.now)
		out := c.Flush(k.now)
		for _, o := range out.Outcomes {
			switch o.Kind {
			case client.OutcomeGranted:
				c.Release(k.now, o.Request)
			case client.OutcomeReleased:
				released++
			}
		}
		k.core.Receive(k.now, nodeidtest.ID(1), out.Renewals, out.Commands)
		k.pump()
		for _, r := range k.core.Replies() {
			for _, frame := range r.Frames {
				c.Receive(k.now, nodeidtest.ID(9), frame)
			}
			k.core.Replied(k.now, r.Peer, true)
		}
	}
	for range 10 {
		exchange()
	}
	if phase := c.Status(k.now).Phase; phase != client.Attached {
		b.Fatalf("phase %v", phase)
	}
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = fmt.Sprint("orders/", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, key := range keys {
			c.Acquire(k.now, &client.Request{Key: key})
		}
		for want := released + 100; released < want; {
			exchange()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(released), "ns/pair")
}
