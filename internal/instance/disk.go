package instance

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
	"github.com/mortise-lock/mortise/transport"
)

// DiskState is the kind of a disk fault. The values are those of mortise.DiskState.
type DiskState string

// The states of a disk.
const (
	DiskFailed  DiskState = "failed"
	DiskHung    DiskState = "hung"
	DiskRemoved DiskState = "removed"
	DiskLow     DiskState = "low"
	// The disk is well, but the process may open no more files.
	DiskNoFiles DiskState = "no-files"
)

// DiskFault is a fault of the disk of an instance with Config.Dir.
type DiskFault struct {
	State  DiskState
	Since  time.Time // when the instance noticed the fault, by its own wall clock
	Cause  string
	Remedy string
}

// DiskWords describes a state.
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
	case DiskNoFiles:
		return "its process has no free file descriptors, so it could not write"
	}
	return "its disk is " + string(state)
}

func remedy(state DiskState) string {
	switch state {
	case DiskFailed:
		return "free or repair the disk; restart this instance if it does not vote again within 2 minutes, or if " +
			"no leader answers"
	case DiskHung:
		return "check the disk; restart this instance if the write that has not returned never does"
	case DiskRemoved:
		return "restart this instance while the other voters run: it makes a new directory and gets a vote again; if it " +
			"is the only voter, all locks and data end with it: restart it when you can lose them, and add none before"
	case DiskNoFiles:
		return transport.FreeFiles + "; restart this instance if it does not vote again within 2 minutes"
	}
	return "free some room: without it the next write that needs room ends this instance's vote"
}

const (
	diskLookEvery = 2 * time.Second // the time between two checks of the directory
	diskHungAfter = 3 * time.Second // a longer call to the disk counts as hung
	// diskBlamedAfter is the time after which a call counts as hung although the process has been
	// given no processor meanwhile.
	diskBlamedAfter = 10 * diskHungAfter

	// Every fifth check also writes. While the disk has a fault, every check writes.
	diskWriteEvery = 5
)

type diskWatch struct {
	// began is the clock.Time at which the current call of each kind began. Zero means that no call
	// is running.
	began [3]atomic.Int64
	news  chan struct{} // buffer of one; a value means that a report is due

	mu    sync.Mutex // guards the fields below
	lasts *DiskFault // a fault that has ended the vote; nil means none
	// The fault in passes may end by itself: the disk hangs, has little space, or has failed a
	// check. Nil means no such fault.
	passes *DiskFault
}

// diskCall is a kind of call to the disk. At most one call of each kind is running at a time.
type diskCall int

const (
	diskSaves diskCall = iota
	diskPrepares
	diskRecords
)

func (n *Instance) during(call diskCall, f func() error) error {
	// The lowest bit is set so that the time is never 0. It is then wrong by at most a nanosecond.
	n.disk.began[call].Store(int64(n.env.clock.Now()) | 1)
	defer n.disk.began[call].Store(0)
	return f()
}

func (d *diskWatch) hungFor(now clock.Time) (longest time.Duration) {
	for i := range d.began {
		if began := d.began[i].Load(); began != 0 {
			longest = max(longest, now.Sub(clock.Time(began)))
		}
	}
	return longest
}

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

// diskFailed records the removal of the directory, or a disk error that has ended this instance's
// vote.
func (n *Instance) diskFailed(state DiskState, cause error) {
	about := "the disk of this voter: "
	if state == DiskFailed {
		state = failedState(cause)
	}
	if state == DiskNoFiles {
		about = "this voter: "
	}
	first, news := n.noteDisk(state, cause)
	switch {
	case first:
		n.logger.Error(about+DiskWords(state), "dir", n.config.Dir, "why", diskCause(cause),
			"do", remedy(state))
	case news:
		n.logger.Info(about+DiskWords(state), "dir", n.config.Dir, "why", cause)
	}
}

// failedState returns the state of a disk on which an operation has failed. A lack of file
// descriptors is no fault of the disk.
func failedState(cause error) DiskState {
	if transport.OutOfFiles(cause) {
		return DiskNoFiles
	}
	return DiskFailed
}

// diskCause returns the text of an error without the advice after the semicolon, and without the
// texts of general errors such as raftlog.ErrStorage.
func diskCause(err error) string {
	text := err.Error()
	for _, kind := range []error{raftlog.ErrStorage, raftlog.ErrHung, storage.ErrLost} {
		text = strings.ReplaceAll(text, kind.Error()+": ", "")
	}
	text, _, _ = strings.Cut(text, "; ")
	return text
}

// noteDisk records the fault for Status. The result first is true if the disk had not failed
// before. The result news is true if the state has changed.
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

// n.passing records a fault that may end by itself. The state "" means no fault. If a check of the
// directory fails to write, that is such a fault, and this instance keeps its vote.
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
		log = n.logger.Info // a fault was known, and only its state has changed
	}
	log("the disk of this voter: "+DiskWords(state), "dir", n.config.Dir, "why", cause, "do", f.Remedy)
}

// isDisk reports whether a replica has retired, or failed to start, because of the disk.
func (n *Instance) isDisk(err error) bool {
	if n.dir == nil || errors.Is(err, raftlog.ErrBroken) {
		return false
	}
	hung := errors.Is(err, raftlog.ErrHung) && n.disk.hungFor(n.env.clock.Now()) > 0
	return hung || errors.Is(err, raftlog.ErrStorage) || errors.Is(err, cluster.ErrUnsaved)
}

func (n *Instance) lookAtDisk(write bool) {
	view, err := n.dir.Look(diskLookEvery, write)
	now := n.env.clock.Now()
	hung := n.disk.hungFor(now)
	switch {
	case errors.Is(err, storage.ErrLost):
		n.diskFailed(DiskRemoved, err)
	case excused(now, hung, errors.Is(err, raftlog.ErrHung), n.starvedEnd()):
		// the call may have returned, or never have begun: the next look tells
	case hung >= diskHungAfter:
		n.passing(DiskHung, fmt.Sprintf("a write in %s has not returned for %v", n.config.Dir, hung.Round(time.Second)))
	case errors.Is(err, raftlog.ErrHung):
		n.passing(DiskHung, diskCause(err))
	case transport.OutOfFiles(err):
		n.warnings.files.warn(n.env.clock.Now(), n.logger,
			"the directory cannot be checked, because this process has no free file descriptors: "+
				transport.FreeFiles, "dir", n.config.Dir, "why", diskCause(err))
	case err != nil:
		n.passing(DiskFailed, diskCause(err))
	case view.FreeKnown && n.config.DirFreeBytes > 0 && view.FreeBytes < uint64(n.config.DirFreeBytes):
		n.passing(DiskLow, fmt.Sprintf("%d MiB are left for %s, less than Config.DirFreeBytes, %d MiB",
			view.FreeBytes>>20, n.config.Dir, n.config.DirFreeBytes>>20))
	default:
		n.passing("", "")
	}
}

// excused reports whether a call to the disk, which has run for the time hung or whose check did
// not end in time, says nothing about the disk: the machine gave this process no processor in the
// time in which a hanging call is noticed. starvedEnd is when that ended; zero means never. A call
// that has run for diskBlamedAfter has no excuse.
func excused(now clock.Time, hung time.Duration, late bool, starvedEnd clock.Time) bool {
	return (hung > 0 || late) && hung < diskBlamedAfter && starvedEnd != 0 &&
		now.Sub(starvedEnd) < diskHungAfter+diskLookEvery
}

// starvedEnd returns when the machine last gave the replica's process no processor, or zero.
func (n *Instance) starvedEnd() clock.Time {
	if r := n.replica.Load(); r != nil {
		return r.log.Status().StarvedEnd
	}
	return 0
}

func (n *Instance) reportSoon() {
	select {
	case n.disk.news <- struct{}{}:
	default:
	}
}
