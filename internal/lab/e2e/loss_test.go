package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

const (
	lossLatency = 50 * time.Millisecond
	lossPause   = 200 * time.Millisecond // the time until TCP retransmits a lost packet
	lossWatched = 8 * time.Second
)

// TestALeaderEndsOnALossyNetwork limits the outage after the end of a leader on a network that
// loses packets. Raft messages are sent on two connections, and voters are already connected. At 20
// % loss the medians are 1.1 s (killed) and 1.6 s (cut off).
func TestALeaderEndsOnALossyNetwork(t *testing.T) {
	slow.Nightly(t)
	for _, c := range []struct {
		loss           float64
		killed, cutOff time.Duration // limits of the medians
	}{
		{0, 650 * time.Millisecond, 1300 * time.Millisecond},
		{0.05, 800 * time.Millisecond, 1400 * time.Millisecond},
		{0.2, 2000 * time.Millisecond, 2400 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%v%% lost", 100*c.loss), func(t *testing.T) {
			const rounds = 21
			var killed, cutOff []time.Duration
			for i := range uint64(rounds) {
				bubble(t, func(t *testing.T) { killed = append(killed, lossyOutage(t, c.loss, i, (*fleet).crash)) })
				bubble(t, func(t *testing.T) { cutOff = append(cutOff, lossyOutage(t, c.loss, i, (*fleet).isolate)) })
			}
			for how, of := range map[string]struct {
				took  []time.Duration
				limit time.Duration
			}{"killed": {killed, c.killed}, "cut off": {cutOff, c.cutOff}} {
				slices.Sort(of.took)
				median := of.took[rounds/2]
				t.Logf("%s: median %v, at most %v", how, median, of.took[rounds-1])
				if median > of.limit {
					t.Errorf("%s: after a leader's end no free lock was granted for %v (median), more than %v", how,
						median, of.limit)
				}
			}
		})
	}
}

// lossyOutage ends the leader of three nodes and returns the longest time in which the other nodes
// were granted no lock.
func lossyOutage(t *testing.T, loss float64, seed uint64, end func(*fleet, int)) time.Duration {
	f := startFleet(t, 3, withFounders, func(c *mortise.Config) {
		c.SessionTTL, c.Logger = 10*time.Second, slog.New(slog.DiscardHandler)
	})
	f.net.SetLatency(lossLatency)
	f.net.SetLoss(loss, lossPause, seed)
	time.Sleep(10 * time.Second)
	leader := f.leader()
	ctx, stop := context.WithCancel(t.Context())
	var (
		mu     sync.Mutex
		grants []time.Time
		all    sync.WaitGroup
	)
	for i := range f.nodes {
		for c := range 6 {
			if i != leader {
				n, key := f.nodes[i], fmt.Sprint("probe/", i, "/", c)
				all.Go(func() {
					for ctx.Err() == nil {
						if l, err := n.Lock(ctx, key); err == nil {
							mu.Lock()
							grants = append(grants, time.Now())
							mu.Unlock()
							_ = l.Unlock(ctx)
						}
						time.Sleep(20 * time.Millisecond)
					}
				})
			}
		}
	}
	time.Sleep(3 * time.Second)
	last := time.Now()
	end(f, leader)
	time.Sleep(lossWatched)
	stop()
	all.Wait()
	f.net.SetLoss(0, 0, 0)
	var longest time.Duration
	for _, at := range append(grants, last.Add(lossWatched)) {
		if at.After(last) {
			longest, last = max(longest, at.Sub(last)), at
		}
	}
	return longest
}
