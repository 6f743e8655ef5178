package raftlog

import (
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// The owner is blocked while it stores a snapshot. That must take about as long for a long log as
// for a short one.
func TestASnapshotIsFiledInATimeThatTheLogDoesNotMatterFor(t *testing.T) {
	slow.UnderRace(t)
	const keep, small, large = 4096, 1 << 13, 1 << 19
	filing := func(entries int) time.Duration {
		v, data := newView(), make([]byte, 20)
		log := make([]*raftpb.Entry, entries)
		for i := range log {
			log[i] = &raftpb.Entry{Index: new(uint64(i + 1)), Term: new(uint64(1)), Data: data}
		}
		if err := v.Append(log); err != nil {
			t.Fatal(err)
		}
		store := &MemoryStore{state: State{Entries: log}}
		last := uint64(entries)
		began := time.Now()
		snap := v.take(last, &raftpb.ConfState{}, nil, keep, 1<<20)
		if err := store.Save(Batch{Snapshot: snap}); err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		if first, err := v.FirstIndex(); err != nil || first != last-keep+1 {
			t.Fatalf("of %d entries those from %d on are kept (%v)", entries, first, err)
		}
		return took
	}
	fastest := func(entries int) time.Duration {
		least := filing(entries)
		for range 4 {
			least = min(least, filing(entries))
		}
		return least
	}
	var few, many time.Duration
	for range 4 { // other load may disturb an attempt
		few, many = fastest(small), fastest(large)
		if t.Logf("%v behind %d entries, %v behind %d", few, small, many, large); many <= 8*few {
			return
		}
	}
	t.Errorf("%v behind %d entries, but %v behind %d", few, small, many, large)
}
