package sim

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/raftlog"
)

// Other events of the run happen between the steps of a snapshot.

// hungFor is a little longer than the minute after which a replica gives its disk up.
const hungFor = 70 * time.Second

type snapshotting struct {
	order    raftlog.Take
	capture  raftlog.Capture  // the capture that is being taken; nil means none
	prepared *raftpb.Snapshot // the last prepared snapshot
}

// Take implements raftlog.Shell.
func (r *ownReplica) Take(order raftlog.Take) error {
	c, err := r.glue.Snapshot()
	r.snap.order, r.snap.capture = order, c
	r.stepSnapshot(c)
	return err
}

// stepSnapshot schedules the next step of a snapshot. The step is skipped if a Restore has ended
// the snapshot by then.
func (r *ownReplica) stepSnapshot(c raftlog.Capture) {
	r.aside(0, func() {
		switch {
		case r.snap.capture != c:
			r.p.w.watch.stats.Ended++
		case !c.Step():
			r.stepSnapshot(c)
		default:
			r.snap.capture = nil
			order := r.snap.order
			r.aside(0, func() { r.putTogether(order, c) })
		}
	})
}

// putTogether passes a complete snapshot to the log, even if a Restore has ended the snapshot
// after the capture's last step. In that case, the log ignores the snapshot.
func (r *ownReplica) putTogether(order raftlog.Take, c raftlog.Capture) {
	stats, before := &r.p.w.watch.stats, r.core.Status()
	if r.core.Snapshotted(order.Index,
		c.AppendTo(order.Header, func() {})); r.core.Status().Snapshots == before.Snapshots {
		stats.Ended++
		return
	}
	stats.Snapshots++
	stats.Between += int(before.Applied - order.Index)
}

// Prepare implements raftlog.Shell. A crash before the snapshot is durable loses the snapshot.
func (r *ownReplica) Prepare(s *raftpb.Snapshot) (done bool, err error) {
	w, disk := r.p.w, r.p.m.disk
	if disk == nil {
		r.snap.prepared = s
		return true, nil
	}
	took := w.between(0, 10*disk.latency)
	if w.befalls(hungSnapshot, w.nemesis.hungSnap, r.p.m.name) {
		took += w.between(0, hungFor)
		w.watch.stats.HungSnapshots++
	}
	r.aside(took, func() {
		r.snap.prepared = s
		if w.befalls(powerFails, w.nemesis.brittle/8, r.p.m.name) {
			r.p.m.crashAndReturn() // the snapshot is durable, but no batch refers to it
			return
		}
		r.core.Prepared()
	})
	return false, nil
}

// aside calls the callback in a later turn of the log's owner, after the given time and a random
// delay.
func (r *ownReplica) aside(took time.Duration, then func()) {
	w, most := r.p.w, 20*time.Millisecond
	if w.chance(0.1) {
		most = 4 * replica.ElectionTimeout
	}
	w.after(took+w.between(0, most), func() { r.log.post(func(clock.Time) { then() }) })
}

// A call of names verifies that a batch refers only to a snapshot that is already durable.
func (r *ownReplica) names(b *raftlog.Batch) {
	if b.Prepared && b.Snapshot != r.snap.prepared {
		r.p.w.broken("%s names the snapshot at %d before it is durable", r.judgedAs, b.Snapshot.GetMetadata().GetIndex())
	}
}

// SendSnapshot implements raftlog.Shell. It always reports the result to the log.
func (r *ownReplica) SendSnapshot(m *raftpb.Message) {
	w := r.p.w
	w.watch.stats.SnapshotsSent++
	from, to, term := r.p.identity(), m.GetTo(), m.GetTerm()
	v := r.Place(r.p.core, to)
	report := func(ok bool) { r.log.post(func(clock.Time) { r.core.SnapshotSent(to, term, ok) }) }
	w.after(w.net.hop()+w.between(0, 20*time.Millisecond), func() {
		target := w.at(v.Addr)
		if target == nil || target.proc == nil || !w.net.linked(r.p.m, target) ||
			w.befalls(dropped, w.net.drop, r.p.m.name) || w.now < target.pausedUntil {
			w.after(w.between(0, time.Second), func() { report(false) })
			return
		}
		p := target.proc
		if p.replica == nil || p.group != from.group || p.replica.ID != to ||
			!p.replica.Speaks(p.core, from.raft, from.instance) {
			report(false)
			return
		}
		p.replica.step(m)
		w.after(w.net.hop(), func() { report(true) })
	})
}
