package keeper

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// crowd is a keeper with many instances. Each has one attached session without requests.
type crowd struct {
	*bench
	ids   []lockfsm.SessionID // ids[i] is the session of instance i+1
	seq   uint64
	frame []byte
	acked int
}

func newCrowd(b testing.TB, instances int) *crowd {
	c := &crowd{bench: leadingBench(&testing.T{}), ids: make([]lockfsm.SessionID, instances)}
	nonce := func(i int) (n lockfsm.Nonce) {
		binary.BigEndian.PutUint64(n[:], uint64(i+1))
		return n
	}
	for i := range c.ids {
		c.core.Receive(c.now, nodeidtest.ID(uint64(i+1)), nil, lockfsm.Command{Kind: lockfsm.Open, Nonce: nonce(i),
			TTL: benchTTL, Record: []byte("r")}.Append(nil))
		if i%100 == 99 || i == len(c.ids)-1 {
			c.run()
		}
	}
	for _, s := range c.machine.Sessions() {
		i := int(binary.BigEndian.Uint64(s.Nonce[:])) - 1
		c.ids[i] = s.ID
		c.core.Receive(c.now, nodeidtest.ID(uint64(i+1)), nil, lockfsm.Command{Kind: lockfsm.Attach, Session: s.ID,
			Epoch: 1, Number: 1, Nonce: s.Nonce}.Append(nil))
		c.run()
	}
	if c.heard = nil; len(c.core.peers.attachments) != instances {
		b.Fatalf("%d of %d instances are attached", len(c.core.peers.attachments), instances)
	}
	return c
}

func (c *crowd) run() {
	c.pump()
	for _, r := range c.core.Replies() {
		c.acked += len(r.Frames)
		c.core.Replied(c.now, r.Peer, true)
	}
}

// TestRenewalsCostTheSameInACrowd checks that the time for renewals does not depend on the number
// of idle instances. It allows a factor of eight. A keeper that visited all idle instances would
// take fifty times as long.
func TestRenewalsCostTheSameInACrowd(t *testing.T) {
	const renewals = 200
	cost := func(instances int) time.Duration {
		c := newCrowd(t, instances)
		next, best := 0, time.Duration(math.MaxInt64)
		for range 20 {
			began := time.Now()
			for range renewals {
				c.renewNext(&next)
				c.run()
			}
			best = min(best, time.Since(began))
		}
		return best / renewals
	}
	few, many := cost(100), cost(5000)
	if t.Logf("a renewal takes %v among 100 instances, %v among 5,000", few, many); many > 8*few {
		t.Errorf("a renewal takes %v among 5,000 instances, and %v among 100", many, few)
	}
}

func (c *crowd) renewNext(next *int) {
	i := *next % len(c.ids)
	if *next++; i == 0 {
		c.seq++
		c.now = c.now.Add(time.Millisecond)
	}
	c.frame = session.Renewal{Session: c.ids[i], Epoch: 1, Seq: c.seq, Heard: c.seq - min(c.seq, 1)}.Append(c.frame[:0])
	c.core.Receive(c.now, nodeidtest.ID(uint64(i+1)), c.frame, nil)
}

// BenchmarkRenewals measures one second of renewals, with three renewals per TTL of each instance
// and a hundred turns.
func BenchmarkRenewals(b *testing.B) {
	for _, instances := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("instances=%d", instances), func(b *testing.B) {
			c := newCrowd(b, instances)
			const turns = 100
			perTurn := max(1, int(float64(instances)*3/benchTTL.Seconds()/turns))
			next, sent := 0, 0
			b.ReportAllocs()
			for b.Loop() {
				for range turns {
					for range perTurn {
						c.renewNext(&next)
						sent++
					}
					c.now = c.now.Add(clock.Time(time.Second / turns).Sub(0))
					c.run()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(sent), "ns/renewal")
			b.ReportMetric(100*b.Elapsed().Seconds()/float64(b.N), "%core")
			if c.acked == 0 {
				b.Fatal("nothing was acknowledged")
			}
		})
	}
}
