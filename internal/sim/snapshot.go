package sim

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/raftlog"
)

// snapshotting is what a replica has to do with the snapshot that it is taking, as the shell of the log does it: in steps on the log's
// goroutine, then beside it.
type snapshotting struct {
	order    raftlog.Take
	capture  raftlog.Capture  // being taken; nil: none
	prepared *raftpb.Snapshot // the last one that is durable beside the log
}

// beginSnapshot is the beginning of one. What comes between its steps is up to the seed.
func (r *ownReplica) beginSnapshot(order raftlog.Take) {
	r.trail.Mark()
	r.snap.order, r.snap.capture = order, r.capture()
	r.stepSnapshot(r.snap.capture)
}

// stepSnapshot has a snapshot's next step taken, unless a restore has ended it by then, and after the last one puts it together. The one
// that a restore ends in the middle of that is handed in all the same.
func (r *ownReplica) stepSnapshot(c raftlog.Capture) {
	w := r.p.w
	w.after(r.aside(), func() {
		r.log.post(func(clock.Time) {
			if r.snap.capture != c {
				w.watch.stats.Ended++
				return
			}
			if !c.Step() {
				r.stepSnapshot(c)
				return
			}
			r.snap.capture = nil
			order := r.snap.order
			w.after(r.aside(), func() {
				r.log.post(func(clock.Time) {
					before := r.core.Status()
					if r.core.Snapshotted(order.Index, c.AppendTo(order.Header, func() {})); r.core.Status().Snapshots == before.Snapshots {
						w.watch.stats.Ended++
						return
					}
					w.watch.stats.Snapshots++
					w.watch.stats.Between += int(before.Applied - order.Index)
				})
			})
		})
	})
}

// prepare makes a snapshot durable beside the log. If the process dies meanwhile there is nothing of it.
func (r *ownReplica) prepare(s *raftpb.Snapshot) {
	w := r.p.w
	if r.p.m.disk == nil {
		r.snap.prepared = s
		r.core.Prepared()
		return
	}
	w.after(r.aside()+w.between(0, 10*r.p.m.disk.latency), func() {
		if r.log.gone() {
			return
		}
		r.snap.prepared = s
		if w.chance(w.nemesis.brittle / 8) {
			r.p.m.crashAndReturn() // durable, and not named
			return
		}
		r.log.post(func(clock.Time) { r.core.Prepared() })
	})
}

// aside is how long a part of it takes, for which nobody waits: now and then long enough for anything to come between.
func (r *ownReplica) aside() time.Duration {
	w := r.p.w
	if w.chance(0.1) {
		return w.between(0, 4*electionTimeout)
	}
	return w.between(0, 20*time.Millisecond)
}

// names sees a snapshot of the replica's own get its name: it must be durable by then.
func (r *ownReplica) names(b *raftlog.Batch) {
	if b.Prepared && b.Snapshot != r.snap.prepared {
		r.p.w.broken("%s names the snapshot at %d before it is durable", r.who, b.Snapshot.GetMetadata().GetIndex())
	}
}
