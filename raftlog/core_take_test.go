package raftlog

import (
	"errors"
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// A call of idle runs the cluster for the given number of ticks. All work is done except the
// stages of snapshots, which wait for a call of finish.
func (c *cluster) idle(ticks int) { c.runWithHungDisk(nil, ticks, func() bool { return false }) }

func (r *replica) takes(t *testing.T) Take {
	t.Helper()
	r.c.slowly = true
	r.core.snapshots.since = 1 << 30
	r.propose()
	r.turn()
	r.c.idle(1)
	if r.capture == nil {
		t.Fatalf("no snapshot was begun: %+v", r.core.Status())
	}
	return r.capture.order
}

// Entries and a configuration that are applied while a snapshot is taken are not in the snapshot.
func TestSnapshotIsOfItsBeginning(t *testing.T) {
	c := newCluster(t, 3, 3, func(cfg *CoreConfig) { cfg.SnapshotBytes = 1 << 20 })
	l := c.elect()
	order := l.takes(t)
	if !l.core.Change(l.role.Term, add(4)) {
		t.Fatal("no change is taken")
	}
	l.turn()
	c.idle(3)
	for range 5 {
		l.propose()
		l.turn()
		c.idle(1)
	}
	now := l.core.applied
	if l.finish(); l.writing == nil || l.save != nil {
		t.Fatalf("complete, but not being prepared: %v, %v", l.writing, l.save)
	}
	meta := l.writing.GetMetadata()
	if meta.GetIndex() != order.Index || now < order.Index+6 || len(meta.GetConfState().GetLearners()) != 0 {
		t.Errorf("a snapshot begun at %d and complete at %d says that it is of %v", order.Index, now, meta)
	}
	l.finish()
	if l.save == nil || !l.save.Prepared || l.save.Snapshot.GetMetadata().GetIndex() != order.Index {
		t.Fatalf("prepared, but not named by %v", l.save)
	}
	l.sync()
	l.crash(false)
	l.start()
	if config, _, err := open(l.store.state.Snapshot); err != nil || len(config.Learners) != 0 ||
		l.core.Status().Last != now {
		t.Errorf("restarted with a snapshot of %v (%v) and a log to %d, want one without a learner, and a log to %d",
			config, err, l.core.Status().Last, now)
	}
	if next := c.elect(); !slices.Equal(l.config.Learners, []uint64{4}) || l.machine != next.machine {
		t.Errorf("after the restart: %v at %d, the leader at %d", l.config, l.machine.index, next.machine.index)
	}
	c.verify()
}

func TestLearnerOfALaterConfigurationGetsAnotherSnapshot(t *testing.T) {
	c := newCluster(t, 3, 3, func(cfg *CoreConfig) { cfg.SnapshotBytes = 1 << 20 })
	l := c.elect()
	order := l.takes(t)
	learner := c.join(4)
	if !l.core.Change(l.role.Term, add(4)) {
		t.Fatal("no change is taken")
	}
	l.turn()
	c.idle(3)
	if !l.core.view.wanted || l.core.snapshotDue() {
		t.Fatalf("a snapshot is wanted: %v; a second one is begun: %v", l.core.view.wanted, l.core.snapshotDue())
	}
	l.finish()
	if !l.core.view.wanted {
		t.Errorf("the snapshot at %d, from before the configuration at %d, is enough", order.Index,
			l.core.view.confIndex)
	}
	c.settle(5)
	if got := l.core.view.index(); got < l.core.view.confIndex || learner.machine != l.machine {
		t.Errorf("the leader's snapshot is at %d, the configuration at %d; the learner stands at %d of %d", got,
			l.core.view.confIndex,
			learner.machine.index, l.machine.index)
	}
	c.verify()
}

func TestSavesGoOnWhileASnapshotIsPrepared(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	order := l.takes(t)
	l.finish()
	for range 50 {
		l.propose()
		l.turn()
		if l.save == nil || l.save.Snapshot != nil {
			t.Fatalf("saved while a snapshot is prepared: %v", l.save)
		}
		c.idle(1)
	}
	if l.store.state.Snapshot.GetMetadata().GetIndex() >= order.Index || l.core.applied < order.Index+50 ||
		l.capture != nil {
		t.Errorf("applied %d, stored %v, another one begun: %v", l.core.applied, l.store.state.Snapshot.GetMetadata(),
			l.capture != nil)
	}
	// After a crash here the previous snapshot is in effect.
	l.crash(false)
	l.start()
	c.settle(30)
	c.verify()
}

// If a snapshot arrives from the leader while a replica takes one, the replica's own snapshot
// ends, whatever stage it has reached.
func TestAnotherReplicasSnapshotEndsOurOwn(t *testing.T) {
	for _, step := range []takeStep{takeCapture, takePrepare, takeName} {
		c := newCluster(t, 3, 3, func(cfg *CoreConfig) { cfg.KeepEntries = 0 })
		l := c.elect()
		away := c.replicas[l.id%3]
		l.propose()
		l.turn()
		c.settle(1)
		if away.capture = nil; away.core.snapshots.taking.step != takeNone {
			t.Fatal("a snapshot is being taken already")
		}
		away.core.snapshots.since = 1 << 30
		c.slowly = true
		l.propose()
		l.turn()
		c.idle(2)
		order := away.capture.order
		for away.core.snapshots.taking.step < step {
			away.finish()
		}
		c.isolate(away.id)
		c.slowly = false
		for range 60 {
			l.propose()
			l.turn()
			c.idle(1)
		}
		clear(c.cut)
		c.slowly = true
		for range 30 {
			if c.idle(1); len(c.snaps) > 0 {
				c.passSnapshot(0)
			}
		}
		if got := away.store.state.Snapshot.GetMetadata().GetIndex(); got <= order.Index || away.machine.index < got {
			t.Fatalf("step %d: the snapshot of the leader did not arrive: stored %d, applied %d", step, got,
				away.machine.index)
		}
		for away.finish() {
		}
		c.idle(2)
		stored := away.store.state.Snapshot.GetMetadata().GetIndex()
		if stored <= order.Index || away.core.view.index() < stored {
			t.Errorf("step %d: it holds a snapshot at %d and would send one at %d; its own was of %d", step, stored,
				away.core.view.index(), order.Index)
		}
		for range 60 {
			l.propose()
			l.turn()
			c.idle(1)
			for away.finish() {
			}
		}
		if got := away.store.state.Snapshot.GetMetadata().GetIndex(); got <= stored {
			t.Errorf("step %d: no snapshot is taken any more: still %d", step, got)
		}
		c.verify()
	}
}

func TestSnapshotThatIsNeverDurable(t *testing.T) {
	slow.UnderRace(t)
	limit := int(prepareLimit(0) / testTick)
	c := newCluster(t, 3, 3, func(cfg *CoreConfig) { cfg.SnapshotBytes = 1 << 20 })
	l := c.elect()
	l.takes(t)
	l.finish()
	if c.idle(limit - 1); !l.role.Leading || l.failed != nil {
		t.Fatalf("a leader retires before its limit: %v, %v", l.role, l.failed)
	}
	if c.idle(20); l.role.Leading || !errors.Is(l.failed, ErrHung) {
		t.Errorf("a leader that has handed over stays although its disk hangs: %v, %v", l.role, l.failed)
	}
	c.verify()

	// Here no other voter can become the leader.
	c = newCluster(t, 4, 3, func(cfg *CoreConfig) { cfg.SnapshotBytes = 1 << 20 })
	l = c.elect()
	l.takes(t)
	l.finish()
	c.lose = func(m *raftpb.Message) bool { return m.GetType() == raftpb.MsgTimeoutNow }
	if c.idle(limit + 5); !l.role.Leading || l.failed != nil {
		t.Errorf("a leader without a successor retires at once: %v, %v", l.role, l.failed)
	}
	if c.idle(46); !errors.Is(l.failed, ErrHung) {
		t.Errorf("a leader without a successor never retires: %v, %v", l.role, l.failed)
	}

	// Here the Prepare of a follower never ends.
	c = newCluster(t, 5, 3, func(cfg *CoreConfig) { cfg.SnapshotBytes = 1 << 20 })
	l = c.elect()
	r := c.replicas[l.id%3]
	c.slowly, r.core.snapshots.since = true, 1<<30
	l.propose()
	l.turn()
	c.idle(2)
	r.finish()
	if c.idle(limit - 5); r.failed != nil {
		t.Errorf("a follower retires before its limit: %v", r.failed)
	}
	if c.idle(10); !errors.Is(r.failed, ErrHung) {
		t.Errorf("a follower never retires: %v", r.failed)
	}
	c.verify()

	// The only voter of a group never retires: it waits for a Prepare, as it would for a Save.
	c, r = lone(t, func(cfg *CoreConfig) { cfg.SnapshotBytes = 1 << 20 })
	r.takes(t)
	r.finish()
	if c.idle(2 * limit); r.failed != nil || !r.role.Leading {
		t.Errorf("a lone voter retired: %v", r.failed)
	}
	if r.finish(); r.save == nil || !r.save.Prepared {
		t.Error("it does not go on when the disk does")
	}
}

func TestSnapshotsAreNotTakenTogether(t *testing.T) {
	const bytes = 1 << 20
	seen := map[int]bool{}
	for id := range uint64(5) {
		for taken := range uint64(5) {
			c := &Core{id: id + 1, snapshots: snapshots{taken: taken}, view: newView(), cfg: CoreConfig{SnapshotBytes: bytes}}
			enough := c.enough()
			if enough < bytes || enough >= bytes*3/2 {
				t.Errorf("replica %d takes snapshot %d after %d bytes, want %d to %d", id+1, taken, enough, bytes,
					bytes*3/2)
			}
			seen[enough] = true
		}
	}
	if len(seen) < 24 {
		t.Errorf("five replicas take five snapshots at only %d different moments", len(seen))
	}
}
