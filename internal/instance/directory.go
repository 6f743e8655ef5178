package instance

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

// This file is about what a node keeps in Config.Dir: the log of its replica, which the raftlog
// room writes, and beside it what the cluster room has to remember.

// openDir opens the directory of a node, or returns nil if it has none.
func openDir(c *Config, files storage.FS) (*storage.Dir, error) {
	if c.Dir == "" {
		return nil, nil
	}
	dir, err := storage.Open(storage.Config{Path: c.Dir, Files: files, Logger: c.Logger})
	if err != nil {
		return nil, fmt.Errorf("Config.Dir: %w", err)
	}
	return dir, nil
}

// clusterRecord is the one record under which the directory keeps all that the cluster room
// remembers, so that every change of it is one unit.
const clusterRecord = "cluster"

// records implements cluster.Records over a directory. One goroutine at a time uses it.
type records struct {
	dir    *storage.Dir
	all    map[string][]byte                  // as stored; nil before the first Load
	during func(diskCall, func() error) error // watches a call of the disk
}

func (r *records) Load() (map[string][]byte, error) {
	b, err := r.dir.Get(clusterRecord)
	if err != nil {
		return nil, err
	}
	r.all = map[string][]byte{}
	if b != nil {
		if err := json.Unmarshal(b, &r.all); err != nil {
			return nil, fmt.Errorf("%w: its record %q cannot be read: %w", cluster.ErrDirectory, clusterRecord, err)
		}
	}
	return copied(r.all), nil
}

func (r *records) Save(changes map[string][]byte) error {
	next := copied(r.all)
	for name, value := range changes {
		if value == nil {
			delete(next, name)
		} else {
			next[name] = value
		}
	}
	b, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if err := r.during(diskRecords,
		func() error { return r.dir.Put(map[string][]byte{clusterRecord: b}) }); err != nil {
		return err
	}
	r.all = next
	return nil
}

func copied(all map[string][]byte) map[string][]byte {
	next := make(map[string][]byte, len(all))
	for name, value := range all {
		next[name] = append([]byte{}, value...)
	}
	return next
}

// store opens the log of a replica and says whether it is new. In memory every log is.
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

// logUnread notes that the log of this voter cannot be used, for Status, and says so once.
func (n *Instance) logUnread(err error) {
	n.unread.Store(&err)
	if n.isDisk(err) {
		n.noteDisk(DiskFailed, err)
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

// onlyVoter reports whether no other instance has a vote, as far as is known here.
func (n *Instance) onlyVoter(c cluster.Status) bool {
	other := func(v cluster.Voter) bool { return !v.Learner && v.Instance != n.instance() }
	return !slices.ContainsFunc(c.Voters, other)
}

// dropLog removes the log of a raft ID that this instance has given up.
func (n *Instance) dropLog() {
	if n.dir == nil {
		return
	}
	if err := n.dir.DropLog(); err != nil {
		n.logger.Error("the log of the old life could not be removed; it is never used again", "why", err)
	}
}

// Refused implements cluster.DurableHost: this directory may never take part again, and another
// process may have the same raft ID, so nothing of this one may run on.
func (l life) Refused(err error) {
	n := l.node()
	n.client.Rebind(nil, nil)
	n.own.rebind(nil, nil)
	if r := n.replica.Load(); r != nil {
		r.stop()
	}
	n.bind(nil, 0)
	n.fail(fmt.Errorf("mortise: Config.Dir %q: %w", n.config.Dir, err))
}

// Unsaved implements cluster.DurableHost: what this instance can no longer write down it must not
// vote on.
func (l life) Unsaved(err error) {
	n := l.node()
	n.diskFailed(DiskFailed, err)
	if r := n.replica.Load(); r != nil {
		r.stop()
		n.bind(nil, r.Group)
	}
}
