package raftlog

import (
	"context"
	"fmt"
)

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
		HeartbeatTicks: cfg.HeartbeatTicks, SilenceTicks: cfg.SilenceTicks,
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
