package raftlog

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// distance is a network in which each message takes two ticks and some messages are lost. The ticks
// of the replicas are not synchronous.
type distance struct {
	c      *cluster
	random *rand.Rand
	loss   float64
	now    int // in steps
	late   []delayed
}

type delayed struct {
	at int
	m  *raftpb.Message
}

const (
	stepsPerTick = 5
	hop          = 2 * stepsPerTick
)

func (d *distance) step() {
	d.now++
	for _, r := range d.c.replicas {
		if r.core == nil {
			continue
		}
		r.now = r.now.Add(testTick / stepsPerTick)
		r.core.Tick(r.now)
		r.turn()
		if r.save != nil {
			r.sync()
		}
		r.finish()
	}
	for _, m := range d.c.wire {
		if d.random.Float64() >= d.loss {
			d.late = append(d.late, delayed{d.now + hop, m})
		}
	}
	d.c.wire = d.c.wire[:0]
	for len(d.late) > 0 && d.late[0].at <= d.now {
		d.c.deliver(take(&d.late, 0).m)
	}
}

// failover returns the ticks from the crash of a leader until another replica leads. If gone is
// set, PeerLost is called on the other replicas. The argument deaf is the ID of a replica that
// receives no messages.
func failover(t *testing.T, seed uint64, voters int, gone bool, loss float64, deaf uint64) float64 {
	c := newCluster(t, seed, voters, func(cfg *CoreConfig) { cfg.ElectionTicks, cfg.HeartbeatTicks = 20, 4 })
	l := c.elect()
	if l.id == deaf {
		if err := l.core.Transfer(uint64(voters)); err != nil {
			t.Fatal(err)
		}
		l.turn()
		c.settle(10)
	}
	d := &distance{c: c, random: rand.New(rand.NewPCG(seed, 3)), loss: loss}
	for _, r := range c.replicas {
		r.now = r.now.Add(testTick / stepsPerTick * time.Duration(d.random.IntN(stepsPerTick)))
	}
	for range 40*stepsPerTick + d.random.IntN(4*stepsPerTick) {
		d.step()
	}
	if l = c.leader(); l == nil || l.id == deaf {
		return failover(t, seed+1000, voters, gone, loss, deaf) // the leader has changed
	}
	c.lose = func(m *raftpb.Message) bool { return m.GetTo() == deaf }
	d.late = slices.DeleteFunc(d.late, func(m delayed) bool { return m.m.GetTo() == deaf })
	l.crash(false)
	heirs := c.others(l)
	hears := map[*replica]int{}
	for _, r := range heirs {
		hears[r] = d.now + hop + d.random.IntN(2)
	}
	for began := d.now; d.now-began < 1000*stepsPerTick; {
		for _, r := range heirs {
			if gone && hears[r] == d.now {
				r.core.PeerLost(l.id)
				r.turn()
			}
		}
		if d.step(); c.leader() != nil {
			c.verify()
			return float64(d.now-began) / stepsPerTick
		}
	}
	t.Fatalf("seed %d: no replica leads after 1000 ticks", seed)
	return 0
}

// failovers returns the mean and the 95th percentile of many failovers.
func failovers(t *testing.T, voters int, gone bool, loss float64, deaf uint64) (mean, most float64) {
	const seeds = 150
	var took []float64
	for seed := range uint64(seeds) {
		n := failover(t, seed, voters, gone, loss, deaf)
		took, mean = append(took, n), mean+n/seeds
	}
	slices.Sort(took)
	most = took[seeds*95/100]
	t.Logf("%d voters, gone %v, %v lost, %d is deaf: median %.1f ticks, mean %.1f, one of twenty takes more than %.1f",
		voters, gone, loss, deaf, took[seeds/2], mean, most)
	return mean, most
}

// After PeerLost two voters become candidates at the same time, and one of them yields. Then the
// election takes two round trips, and the commit of the first entry takes one more.
func TestElectionsAtADistance(t *testing.T) {
	slow.UnderRace(t)
	for _, tc := range []struct {
		gone       bool
		loss       float64
		mean, most float64
	}{
		{true, 0, 16, 17},
		{true, 0.2, 31, 60},
		{false, 0, 40, 55},
		{false, 0.2, 52, 100},
	} {
		for _, voters := range []int{3, 5} {
			if mean, most := failovers(t, voters, tc.gone, tc.loss, 0); mean > tc.mean || most > tc.most {
				t.Errorf("failover takes %.1f ticks, 95th percentile %.1f, want at most %v and %v", mean, most,
					tc.mean, tc.most)
			}
		}
	}
}

func TestADeafCandidateWinsNothing(t *testing.T) {
	slow.UnderRace(t)
	if mean, most := failovers(t, 5, true, 0, 1); mean > 55 || most > 70 {
		t.Errorf("it takes %.1f ticks, one of twenty more than %.1f", mean, most)
	}
}
