package raftlog

import (
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

func TestLearnerIsSentASnapshotThatNamesIt(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	learner := c.join(4)
	store := learner.store
	l.propose()
	l.turn()
	c.change(l, add(4))
	c.settle(10)
	if learner.machine != l.machine || learner.machine.index == 0 {
		t.Fatalf("the learner stands at %d, the leader at %d", learner.machine.index, l.machine.index)
	}
	if !slices.Contains(store.state.Snapshot.GetMetadata().GetConfState().GetLearners(), 4) {
		t.Errorf("the learner holds a snapshot that does not name it: %v", store.state.Snapshot.GetMetadata())
	}
	if got := l.core.Status(); !slices.Equal(got.Learners, []uint64{4}) ||
		!slices.Equal(got.Voters, []uint64{1, 2, 3}) {
		t.Errorf("the leader's status names %v and %v", got.Voters, got.Learners)
	}
	out := c.replicas[l.id%3]
	c.change(l, Change{Promote: []uint64{4}, Remove: []uint64{out.id}})
	c.settle(10)
	if got := l.core.Status(); len(got.Learners) != 0 || len(got.Voters) != 3 ||
		slices.Contains(got.Voters, out.id) || !slices.Contains(got.Voters, 4) {
		t.Errorf("after the replacement: %+v", got)
	}
	c.verify()
}

func TestConfigurationSurvivesARestart(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		c := newCluster(t, 3, 3, func(cfg *CoreConfig) { cfg.SnapshotBytes = 1 << 20 })
		l := c.elect()
		c.change(l, add(9))
		if snapshot {
			l.core.snapshots.since = 1 << 30
		}
		l.propose()
		l.turn()
		c.settle(3)
		if got := l.store.state.Snapshot.GetMetadata().GetIndex() > 1; got != (snapshot || l.taken > 0) {
			t.Fatalf("snapshot %v, stored %d", snapshot, l.store.state.Snapshot.GetMetadata().GetIndex())
		}
		l.crash(false)
		l.start()
		c.settle(30)
		if got := l.core.Status(); !slices.Equal(got.Learners, []uint64{9}) ||
			!slices.Equal(got.Voters, []uint64{1, 2, 3}) {
			t.Errorf("after a restart (snapshot %v) the configuration is %v, %v", snapshot, got.Voters, got.Learners)
		}
		c.verify()
	}
}

func TestFollowerCatchesUpBySnapshot(t *testing.T) {
	c := newCluster(t, 3, 3, func(cfg *CoreConfig) { cfg.KeepEntries, cfg.SnapshotBytes = 0, 256 })
	l := c.elect()
	away := c.replicas[l.id%3]
	away.crash(false)
	for range 50 {
		l.propose()
		l.turn()
		c.drain()
	}
	first, _ := l.core.view.FirstIndex()
	if l.taken < 3 || first <= 10 {
		t.Fatalf("%d snapshots taken, log starts at %d: nothing to catch up from", l.taken, first)
	}
	away.start()
	lost, shown := 0, 0
	for range 30 {
		for _, r := range c.replicas {
			r.now = r.now.Add(testTick)
			r.core.Tick(r.now)
			r.turn()
		}
		for _, r := range c.replicas {
			for r.save != nil {
				r.sync()
			}
		}
		for len(c.wire) > 0 {
			c.deliver(take(&c.wire, 0))
		}
		if len(c.snaps) > 0 && lost < 3 {
			if size := len(c.snaps[0].GetSnapshot().GetData()); size > 0 && l.sees(away.id).Snapshot == size {
				shown++
			}
			c.passSnapshot(1)
			lost++
		}
		c.drain()
	}
	if shown != 3 {
		t.Errorf("the survey showed the size of %d snapshots that were under way, want 3", shown)
	}
	if p := l.sees(away.id); p.Snapshot != 0 || !p.CaughtUp {
		t.Errorf("after the snapshot the leader sees %+v", p)
	}
	if lost != 3 {
		t.Errorf("%d snapshots were sent to be lost, want 3: after a lost one no other is sent", lost)
	}
	if away.machine != l.machine {
		t.Errorf("the follower stands at %d, the leader at %d", away.machine.index, l.machine.index)
	}
	c.verify()
}

func TestEntriesAreKeptBehindASnapshot(t *testing.T) {
	for _, tc := range []struct{ keep, bytes, want int }{{0, 1 << 10, 0}, {-1, 1 << 10, 0}, {5, 1 << 10, 5},
		{1000, 480, 10}} {
		c, r := lone(t, func(cfg *CoreConfig) { cfg.KeepEntries, cfg.SnapshotBytes = tc.keep, tc.bytes })
		for range 200 {
			r.propose()
			r.turn()
			c.drain()
		}
		snap := r.core.view.index()
		first, _ := r.core.view.FirstIndex()
		if got := int(snap + 1 - first); got != tc.want || snap < 100 {
			t.Errorf("keep %d within %d bytes: snapshot at %d, log from %d: %d kept, want %d", tc.keep, tc.bytes,
				snap, first, got, tc.want)
		}
		if stored := r.store.state; stored.Snapshot.GetMetadata().GetIndex() != snap ||
			len(stored.Entries) != int(r.core.last-snap) {
			t.Errorf("the store holds snapshot %d and %d entries, want %d and %d",
				stored.Snapshot.GetMetadata().GetIndex(), len(stored.Entries),
				snap, r.core.last-snap)
		}
		r.crash(false)
		r.start()
		if r.machine.index < snap {
			t.Errorf("restarted at %d, behind the snapshot at %d", r.machine.index, snap)
		}
		c.verify()
	}
}

func TestNoOwnSnapshotWhileAnotherIsOnItsWay(t *testing.T) {
	c, r := lone(t)
	r.core.snapshots.since = 1 << 30
	r.core.appends.remote++
	if r.turn(); r.taken != 0 {
		t.Error("a snapshot was taken while another replica's was being saved")
	}
	r.core.Snapshotted(r.core.applied, nil)
	r.core.appends.remote--
	if r.turn(); r.taken != 1 {
		t.Error("no snapshot was taken afterwards")
	}
	c.verify()
}

func TestMergedSavesEqualSingleOnes(t *testing.T) {
	random := newCluster(t, 4, 1).random
	for range 2000 {
		single, together := newTestStore(t, 1, []uint64{1}), newTestStore(t, 1, []uint64{1})
		last, term, base := uint64(1), uint64(1), uint64(1)
		var items []appendItem
		extend := func(from uint64, n int) (entries []*raftpb.Entry) {
			for i := range uint64(n) {
				entries = append(entries, &raftpb.Entry{Index: new(from + i), Term: new(term),
					Data: []byte{byte(random.IntN(256))}})
			}
			last = from + uint64(n) - 1
			return entries
		}
		save := func(it appendItem) {
			b, _ := merge([]appendItem{it})
			if err := single.Save(b); err != nil {
				t.Fatal(err)
			}
		}
		for range 1 + random.IntN(8) {
			var it appendItem
			switch random.IntN(6) {
			case 0:
				term++
				base = last + 1 + random.Uint64N(3)
				it.snapshot, last = snapshotAt(base, term), base
			case 1: // a snapshot of this replica, whose entries are already durable
				if stored := single.state.Entries; len(stored) > 0 && len(items) == 0 {
					e := stored[random.IntN(len(stored))]
					it.snapshot, it.local, base = snapshotAt(e.GetIndex(), e.GetTerm()), true, e.GetIndex()
				}
			case 2: // overwrites earlier entries
				term++
				it.entries = extend(base+1+random.Uint64N(last-base+1), 1+random.IntN(3))
			default:
				it.entries = extend(last+1, 1+random.IntN(3))
			}
			save(it)
			items = append(items, it)
			if random.IntN(3) == 0 {
				b, _ := merge(items)
				if err := together.Save(b); err != nil {
					t.Fatal(err)
				}
				items = nil
			}
		}
		b, _ := merge(items)
		if err := together.Save(b); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(single.state.Entries, together.state.Entries) ||
			!proto.Equal(single.state.Snapshot, together.state.Snapshot) {
			t.Fatalf("one by one:\n%v\ntogether:\n%v", single.state, together.state)
		}
	}
}

func snapshotAt(index, term uint64) *raftpb.Snapshot {
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: &index, Term: &term}}
}
