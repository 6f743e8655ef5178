package raftlog

import (
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// chaosRun runs one seed, first with faults of all kinds and then without faults. At the end all
// replicas must have the leader's state, and must have applied a new entry. It returns the hash
// of the run.
func chaosRun(t *testing.T, seed uint64, steps int) uint64 {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("seed %d: a replica panicked: %v\n%s", seed, p, debug.Stack())
		}
	}()
	voters := 3
	if seed%5 == 0 {
		voters = 1
	}
	c := newCluster(t, seed, voters, func(cfg *CoreConfig) {
		cfg.KeepEntries = int(seed % 3 * 8)
		cfg.EntriesInFlight = 1 + int(seed%2)
		if seed%4 == 0 {
			cfg.QueueBytes, cfg.UncommittedBytes, cfg.EntryBytes = 256, 64, 64
		}
		if seed%2 == 1 { // elections begin early
			cfg.SilenceTicks, cfg.GapWindow = 3, 20*testTick
		}
	})
	c.slowly = seed%7 != 0
	loss := []float64{0, 0.02, 0.15}[seed%3]
	for range steps {
		c.chaos(loss, true)
	}
	lead := c.elect()
	before := lead.machine.index
	if !lead.propose() {
		t.Errorf("the leader accepts no batch without faults: %+v", lead.core.Status())
	}
	lead.confirm(seed)
	lead.turn()
	c.settle(30)
	if _, open := lead.asked[seed]; open {
		t.Errorf("a round stays unconfirmed without faults")
	}
	for _, r := range c.replicas {
		if r.core == nil {
			t.Errorf("replica %d has retired: %v", r.id, r.failed)
		} else if r.machine != lead.machine || r.machine.index <= before {
			t.Errorf("replica %d stands at %d, the leader at %d", r.id, r.machine.index, lead.machine.index)
		}
	}
	c.verify()
	if t.Failed() {
		t.Fatalf("seed %d", seed)
	}
	return c.sum.Sum64()
}

func TestChaos(t *testing.T) {
	slow.UnderRace(t)
	seeds, steps := 40, 20_000
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { chaosRun(t, uint64(seed), steps) })
	}
}

func TestSameSeedSameRun(t *testing.T) {
	for seed := range uint64(4) {
		if a, b := chaosRun(t, seed, 2000), chaosRun(t, seed, 2000); a != b {
			t.Errorf("seed %d gave two different runs: %x and %x", seed, a, b)
		}
	}
	if a, b := chaosRun(t, 1, 2000), chaosRun(t, 2, 2000); a == b {
		t.Errorf("two seeds gave the same run")
	}
}
