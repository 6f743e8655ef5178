package instance

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

// This file stores the log of the replica and the records of package cluster in Config.Dir.

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

// clusterRecord is the name of the stored record that contains all records of package cluster. One
// record makes every change atomic.
const clusterRecord = "cluster"

// records implements cluster.Records over a directory. It is not safe for concurrent use.
type records struct {
	dir    *storage.Dir
	all    map[string][]byte // the stored records; nil until Load
	during func(diskCall, func() error) error
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

// Refused stops the instance. The directory must not be used again, because another process may
// have the same raft ID.
func (l life) Refused(err error) {
	n := l.node()
	n.sessions.Rebind(nil, nil, nil)
	if r := n.replica.Load(); r != nil {
		r.stop()
	}
	n.bind(nil, 0)
	n.fail(fmt.Errorf("mortise: Config.Dir %q: %w", n.config.Dir, err))
}

// Unsaved ends the vote, because an instance that cannot write to its directory must not vote.
func (l life) Unsaved(err error) {
	n := l.node()
	n.diskFailed(DiskFailed, err)
	if r := n.replica.Load(); r != nil {
		r.stop()
		n.bind(nil, r.Group)
	}
}
