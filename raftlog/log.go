package raftlog

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"go.etcd.io/raft/v3/raftpb"
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

// Start starts the replica whose log the store holds. If the store has a snapshot, the Applier
// first gets a call of Restore.
func Start(cfg Config) (*Log, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	st, err := cfg.Store.Load()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	if want := (Identity{cfg.Group, cfg.ID}); st.Identity != want {
		return nil, fmt.Errorf("%w: it holds replica %x of group %x, not replica %x of group %x", ErrIdentity,
			st.Identity.ID, st.Identity.Group, cfg.ID, cfg.Group)
	}
	core, err := NewCore(CoreConfig{
		State: st, Now: cfg.Clock.Now(), Tick: cfg.Tick, ElectionTicks: cfg.ElectionTicks,
		HeartbeatTicks:  cfg.HeartbeatTicks,
		EntriesInFlight: cfg.EntriesInFlight, Deferrable: cfg.Deferrable, Queued: cfg.Queued, Digest: cfg.Digest,
		QueueBytes: cfg.QueueBytes, SnapshotBytes: cfg.SnapshotBytes,
		KeepEntries: cfg.KeepEntries, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	l := &Log{
		cfg: cfg, core: core, wake: make(chan struct{}, 1), saves: make(chan Batch, 1), tasks: make(chan task, 1),
		owner: make(chan struct{}), appender: make(chan struct{}), snapshotter: make(chan struct{}),
		closed: make(chan struct{}), status: core.Status(), survey: core.Survey(),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	go l.runOwner()
	go l.runSnapshotter()
	if cfg.Store.Volatile() {
		close(l.appender)
	} else {
		go l.runAppender()
	}
	l.kick()
	return l, nil
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
