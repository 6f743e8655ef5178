package raftlog

import (
	"context"
	"sync"
	"sync/atomic"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/clock"
)

// Log is one replica of a replicated log. All methods are safe for concurrent use, and only
// Transfer and Close block.
type Log struct {
	cfg  Config
	wake chan struct{} // has one slot; a value means that the owner has work

	// Only the owner goroutine uses the following fields, up to mu.
	core *Core
	out  []*raftpb.Message // messages to be sent at the end of the turn

	duplicates []*raftpb.Message // those in out that are also sent on the second connection
	called     bool              // this turn has called the Applier or sent a message
	where      phase             // the code that runs now, to classify a panic
	transfers  []transfer        // transfers that wait for their outcome
	saves      chan Batch        // carries batches to the appender, at most one at a time
	taking     taken
	starving   starving
	tasks      chan task // carries tasks to the snapshotter, at most one at a time
	spare      inbox     // the inbox that was swapped out; its memory is reused

	mu      sync.Mutex // guards in, arrived, queued, status, survey and ended
	in      inbox
	arrived int // number of additions to the inbox since the last swap
	queued  int // bytes of batches in the inbox and in the core
	status  Status
	survey  Survey
	ended   error // not nil once the log accepts no more input

	owner       chan struct{}   // closed when the owner goroutine has returned
	appender    chan struct{}   // closed when the appender goroutine has returned
	snapshotter chan struct{}   // closed when the snapshotter goroutine has returned
	ctx         context.Context // canceled when the owner returns
	cancel      context.CancelFunc
	closing     atomic.Bool   // Close was called
	closed      chan struct{} // closed when the first Close is about to return
	closeErr    error         // result of the first Close
}

// starving measures how late the owner wakes for its ticks. Only the owner goroutine uses it.
type starving struct {
	clock.Starvation
	due clock.Time // when the timer fires; zero means not known
}

// Status returns the state of the replica at the end of its last turn. The slices are shared and
// must not be changed.
func (l *Log) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

// Survey returns the state of the group at the last tick, or at the last change of role or
// configuration if that was later. The slices are shared and must not be changed.
func (l *Log) Survey() Survey {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.survey
}

func (l *Log) publishSurvey() {
	s, anew := l.core.Surveyed()
	if !anew {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.survey = s
}

// publish stores the Status. It also subtracts from l.queued the bytes of the batches that were
// proposed or discarded in this turn. taken is the number of queued bytes at the beginning of this
// turn.
func (l *Log) publish(taken int) {
	st := l.core.Status()
	l.mu.Lock()
	defer l.mu.Unlock()
	st.Dropped = l.status.Dropped
	st.Starved, st.StarvedEnd = l.starving.Total, l.starving.Ended
	l.status = st
	l.queued -= taken - st.Queued
}
