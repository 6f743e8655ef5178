package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

// DiskState says in a word what is wrong with a disk. The words are those of mortise.DiskState.
type DiskState string

// The states of a disk.
const (
	DiskFailed  DiskState = "failed"
	DiskHung    DiskState = "hung"
	DiskRemoved DiskState = "removed"
	DiskLow     DiskState = "low"
)

// DiskFault is what is wrong with the disk of an instance with Config.Dir.
type DiskFault struct {
	State  DiskState
	Since  time.Time // when the instance noticed it, by its own wall clock
	Cause  string    // the error, with the path
	Remedy string    // what to do
}

// DiskWords says what a state means.
func DiskWords(state DiskState) string {
	switch state {
	case DiskFailed:
		return "its disk has failed"
	case DiskHung:
		return "its disk does not answer"
	case DiskRemoved:
		return "its directory was removed or replaced"
	case DiskLow:
		return "its disk is almost full"
	}
	return "its disk is " + string(state)
}

// remedy says what an operator does about a state.
func remedy(state DiskState) string {
	switch state {
	case DiskFailed:
		return "free or repair the disk; restart this instance if it does not vote again within 2 minutes, or if " +
			"no leader answers"
	case DiskHung:
		return "see to the disk; restart this instance if its call never returns"
	case DiskRemoved:
		return "restart this instance while the other voters run: it makes a new directory and gets a vote again"
	}
	return "free some room: without it the next write that needs room ends this instance's vote"
}

const (
	diskLookEvery = 2 * time.Second // between two looks at the directory
	diskHungAfter = 3 * time.Second // from when on a call of the disk counts as hung

	// diskWriteEvery is how many looks there are to one that also writes. With a fault each look
	// writes.
	diskWriteEvery = 5
)

// diskWatch is what this instance knows about its own disk.
type diskWatch struct {
	began [3]atomic.Int64 // clock.Time at which a call of each kind began; 0: none is under way
	news  chan struct{}   // one slot: there is something new to report

	mu     sync.Mutex // guards what follows; never held across a wait
	lasts  *DiskFault // failed or removed, at the cost of the vote; nil: neither
	passes *DiskFault // hung, low, or failed at a look; nil: none of them
}

// diskCall is a kind of call. Of one kind at most one is under way.
type diskCall int

const (
	diskSaves diskCall = iota
	diskPrepares
	diskRecords
)

// during notes that a call of the disk is under way until f returns.
func (n *Instance) during(call diskCall, f func() error) error {
	n.disk.began[call].Store(int64(n.env.clock.Now()) | 1) // a nanosecond more or less: never 0
	defer n.disk.began[call].Store(0)
	return f()
}

// hungFor returns for how long the oldest call of the disk has not returned.
func (d *diskWatch) hungFor(now clock.Time) (longest time.Duration) {
	for i := range d.began {
		if began := d.began[i].Load(); began != 0 {
			longest = max(longest, now.Sub(clock.Time(began)))
		}
	}
	return longest
}

// fault returns what is wrong with the disk of this instance, or nil.
func (n *Instance) diskFault() *DiskFault {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	f := n.disk.lasts
	if f == nil {
		f = n.disk.passes
	}
	if f == nil {
		return nil
	}
	copied := *f
	return &copied
}

// diskFailed notes an error of the disk that has cost this instance its vote, or a directory that
// is gone. One failure is one ERROR line in the log: what follows from it is none of its own.
func (n *Instance) diskFailed(state DiskState, cause error) {
	first, news := n.noteDisk(state, cause)
	switch {
	case first:
		n.logger.Error("the disk of this voter: "+DiskWords(state), "dir", n.config.Dir, "why", diskCause(cause),
			"do", remedy(state))
	case news:
		n.logger.Info("the disk of this voter: "+DiskWords(state), "dir", n.config.Dir, "why", cause)
	}
}

// diskCause returns what happened, without the kinds of error around it and the way out behind it.
func diskCause(err error) string {
	text := err.Error()
	for _, kind := range []error{raftlog.ErrStorage, raftlog.ErrHung, storage.ErrLost} {
		text = strings.ReplaceAll(text, kind.Error()+": ", "")
	}
	text, _, _ = strings.Cut(text, "; ")
	return text
}

// noteDisk notes it for Status. It reports whether this is the first that is known of a failure,
// and whether it says more than what was known.
func (n *Instance) noteDisk(state DiskState, cause error) (first, news bool) {
	f := &DiskFault{State: state, Since: n.env.wall(), Cause: plain.Text(diskCause(cause)), Remedy: remedy(state)}
	d := &n.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	had := d.lasts
	if had != nil && (had.State == state || had.State == DiskRemoved) {
		return false, false
	}
	first = had == nil && (d.passes == nil || d.passes.State == DiskLow)
	if !first {
		f.Since = cmp.Or(had, d.passes).Since
	}
	d.lasts = f
	n.reportSoon()
	return first, true
}

// passing notes a state of the disk that may end by itself; "" means that there is none. As long as
// nothing of the log has failed, a disk that refuses a look's write costs no vote.
func (n *Instance) passing(state DiskState, cause string) {
	d := &n.disk
	d.mu.Lock()
	was := d.passes
	var f *DiskFault
	if state != "" {
		f = &DiskFault{State: state, Since: n.env.wall(), Cause: plain.Text(cause), Remedy: remedy(state)}
	}
	same := was == f || was != nil && f != nil && was.State == state
	ill := was != nil && was.State != DiskLow
	if f != nil && was != nil && (same || ill && state != DiskLow) {
		f.Since = was.Since
	}
	d.passes = f
	lasts := d.lasts != nil
	d.mu.Unlock()
	if same || lasts {
		return
	}
	defer n.reportSoon()
	if f == nil {
		n.logger.Info("the disk of this voter is well again", "dir", n.config.Dir, "was", was.State)
		return
	}
	log := n.logger.Error
	switch {
	case state == DiskLow:
		log = n.logger.Warn
	case ill:
		log = n.logger.Info // the fault is known, and has changed
	}
	log("the disk of this voter: "+DiskWords(state), "dir", n.config.Dir, "why", cause, "do", f.Remedy)
}

// diskWell forgets an error of the disk if the replica of this instance has stored a configuration
// that names it. That an empty replica has been started says nothing about a full disk: it fits
// into the room that is reserved, and fails with the first snapshot, each minute again.
func (n *Instance) diskWell(r *ownReplica) {
	if n.replica.Load() != r || !r.IsNamed() {
		return
	}
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if n.disk.lasts != nil && n.disk.lasts.State != DiskRemoved {
		n.disk.lasts = nil
	}
}

// isDisk reports whether the disk is why a replica has retired or could not be started.
func (n *Instance) isDisk(err error) bool {
	if n.dir == nil || errors.Is(err, raftlog.ErrBroken) {
		return false
	}
	hung := errors.Is(err, raftlog.ErrHung) && n.disk.hungFor(n.env.clock.Now()) > 0
	return hung || errors.Is(err, raftlog.ErrStorage) || errors.Is(err, cluster.ErrUnsaved)
}

// lookAtDisk compares the disk with what it should be; with write it also writes.
func (n *Instance) lookAtDisk(write bool) {
	view, err := n.dir.Look(diskLookEvery, write)
	hung := n.disk.hungFor(n.env.clock.Now())
	switch {
	case errors.Is(err, storage.ErrLost):
		n.diskFailed(DiskRemoved, err)
	case hung >= diskHungAfter:
		n.passing(DiskHung, fmt.Sprintf("a write in %s has not returned for %v", n.config.Dir, hung.Round(time.Second)))
	case errors.Is(err, raftlog.ErrHung):
		n.passing(DiskHung, diskCause(err))
	case err != nil:
		n.passing(DiskFailed, diskCause(err))
	case view.FreeKnown && n.config.DirFreeBytes > 0 && view.FreeBytes < uint64(n.config.DirFreeBytes):
		n.passing(DiskLow, fmt.Sprintf("%d MiB are left for %s, less than Config.DirFreeBytes, %d MiB",
			view.FreeBytes>>20, n.config.Dir, n.config.DirFreeBytes>>20))
	default:
		n.passing("", "")
	}
}

// watchedStore is the store of a replica on a disk that may hang.
type watchedStore struct {
	raftlog.Store
	node *Instance
}

// Save implements raftlog.Store.
func (s watchedStore) Save(b raftlog.Batch) error {
	return s.node.during(diskSaves, func() error { return s.Store.Save(b) })
}

// Prepare implements raftlog.Store.
func (s watchedStore) Prepare(ctx context.Context, snapshot *raftpb.Snapshot) error {
	return s.node.during(diskPrepares, func() error { return s.Store.Prepare(ctx, snapshot) })
}

// awaited returns what the log says for what the cluster room waits for: disks that do not work are
// why voters that are in reach elect none.
func (n *Instance) awaited(waiting string) string {
	if n.dir == nil {
		return waiting
	}
	return cmp.Or(n.config.Disks(), waiting)
}
