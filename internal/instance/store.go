package instance

import (
	"context"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/raftlog"
)

// store opens the log of a replica, and reports whether the log is new. In memory every log is new.
func (n *Instance) store(group, id uint64) (store raftlog.Store, fresh bool, err error) {
	if n.dir == nil {
		return raftlog.NewMemoryStore(), true, nil
	}
	if store, err = n.dir.Log(group, id); err != nil {
		return nil, false, err
	}
	state, err := store.Load()
	if err != nil {
		_ = store.Close()
		return nil, false, err
	}
	return n.timed(watchedStore{store, n}), state.Empty(), nil
}

func (n *Instance) timed(s raftlog.Store) raftlog.Store {
	if n.config.Hooks == nil || n.config.Hooks.Synced == nil || s.Volatile() {
		return s
	}
	return timedStore{s, n}
}

type timedStore struct {
	raftlog.Store
	node *Instance
}

// Save implements raftlog.Store. It reports each failed batch, and each successful batch that
// contains entries or a snapshot.
func (s timedStore) Save(b raftlog.Batch) error {
	began := s.node.env.clock.Now()
	err := s.Store.Save(b)
	if len(b.Entries) == 0 && b.Snapshot == nil && err == nil {
		return nil
	}
	if h := s.node.config.Hooks; h != nil && h.Synced != nil {
		took := s.node.env.clock.Now().Sub(began)
		s.node.trace.Later(func() { h.Synced(took, err) })
	}
	return err
}

// watchedStore records which calls of a store on disk are running, so that a hanging call is
// noticed.
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

func (n *Instance) logUnread(err error) {
	n.unread.Store(&err)
	if n.isDisk(err) {
		n.noteDisk(failedState(err), err)
	}
	if n.onlyVoter(n.cluster().Status()) {
		n.logger.Error("the log of the only voter cannot be used: nothing is granted until its directory is "+
			"removed and "+
			"this instance started again", "dir", n.config.Dir, "why", err)
		return
	}
	n.logger.Error("the log of this voter cannot be used: this instance goes on as a member, and may get a vote under "+
		"another raft ID", "dir", n.config.Dir, "why", err)
}

func (n *Instance) onlyVoter(c cluster.Status) bool {
	other := func(v cluster.Voter) bool { return !v.Learner && v.Instance != n.instance() }
	return !slices.ContainsFunc(c.Voters, other)
}

func (n *Instance) dropLog() {
	if n.dir == nil {
		return
	}
	if err := n.dir.DropLog(); err != nil {
		n.logger.Error("the log of the previous incarnation could not be removed; it is never used again", "why", err)
	}
}
