package storage

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"

	"github.com/mortise-lock/mortise/raftlog"
)

// maxLogRecords is the number of logs that a directory remembers. It forgets the oldest first.
const maxLogRecords = 256

// Log opens the log of a replica, or creates an empty one. Any other log in the directory ends: its
// data is lost, and Log returns ErrEnded for its raft ID from then on. Only one log can be open at
// a time. The caller must close it, or close the Dir.
//
// An error of the Store that wraps raftlog.ErrStorage or raftlog.ErrCorrupt is final until this
// process ends: Log then returns the same error. A log that fails with raftlog.ErrCorrupt can only
// be ended, by DropLog or by Log of another ID.
func (d *Dir) Log(group, id uint64) (raftlog.Store, error) {
	d.mu.lock()
	defer d.mu.unlock()
	want := raftlog.Identity{Group: group, ID: id}
	if err := d.ready(); err != nil {
		return nil, err
	}
	if group == 0 || id == 0 || raft.IsLocalMsgTarget(id) {
		return nil, fmt.Errorf("storage: group %x or replica %x is not a valid ID", group, id)
	}
	if err := d.failed[id]; err != nil {
		return nil, err
	}
	l, err := d.files()
	if err != nil {
		return nil, err
	}
	if err := d.admit(want, l); err != nil {
		return nil, err
	}
	w := d.newLog(want)
	w.spares = l.spares
	if err := d.recycle(l, id, &w.spares); err != nil {
		return nil, err
	}
	if err := w.open(l); err != nil {
		if w.file != nil {
			w.file.Close() // return the first error only
		}
		d.failed[id] = err
		return nil, err
	}
	d.log = w
	return w, nil
}

// DropLog ends the log in the directory, if there is one. Its data is lost, and Log never accepts
// its raft ID again. The log must not be open.
func (d *Dir) DropLog() error {
	d.mu.lock()
	defer d.mu.unlock()
	if err := d.ready(); err != nil {
		return err
	}
	l, err := d.files()
	if err != nil {
		return err
	}
	if err := d.meta.change(func(m *metaState) { m.end(raftlog.Identity{}) }); err != nil {
		return err
	}
	return d.recycle(l, 0, &l.spares)
}

func (d *Dir) ready() error {
	switch {
	case d.closed:
		return d.errClosed()
	case d.meta.failed != nil:
		return d.meta.failed
	case d.log != nil:
		return fmt.Errorf("%w: %s holds that of replica %x; close it first", ErrLogOpen, d.cfg.Path, d.log.id.ID)
	}
	return nil
}

// files lists the files of logs. It returns an error for a log that meta.db does not record.
func (d *Dir) files() (listing, error) {
	l, err := list(d.cfg.Files, d.cfg.Path)
	if err != nil {
		return l, fmt.Errorf("%w: reading %s: %w", raftlog.ErrStorage, d.cfg.Path, err)
	}
	for _, id := range slices.Sorted(maps.Keys(l.segments)) {
		if d.meta.find(id) == nil {
			return l, fmt.Errorf("%w: %s has files of the log of replica %x, which its %s does not record: files "+
				"of different directories or times are mixed there; %s",
				raftlog.ErrCorrupt, d.cfg.Path, id, metaName, recoveryHint)
		}
	}
	return l, nil
}

// admit durably records that this log, and no other, is in the directory.
func (d *Dir) admit(want raftlog.Identity, l listing) error {
	rec := d.meta.find(want.ID)
	switch {
	case rec == nil:
	case rec.Identity != want:
		return fmt.Errorf("%w: replica %x in %s belongs to group %x, not %x; an instance that changes its group "+
			"gets another raft ID", raftlog.ErrIdentity, want.ID, d.cfg.Path, rec.Group, want.Group)
	case rec.state == logEnded:
		return fmt.Errorf("%w: replica %x of group %x in %s; the instance needs another raft ID", ErrEnded, want.ID,
			want.Group, d.cfg.Path)
	case rec.state == logBegun && len(l.segments[want.ID]) == 0:
		return fmt.Errorf("%w: the files of the log of replica %x (%s%016x-...) are missing from %s; %s",
			raftlog.ErrCorrupt, want.ID, segmentPrefix, want.ID, d.cfg.Path, recoveryHint)
	}
	if rec != nil && d.meta.alone(want) {
		return nil
	}
	return d.meta.change(func(m *metaState) {
		m.end(want)
		if rec == nil {
			m.logs = append(m.logs, logRecord{want, logMade})
			m.logs = m.logs[max(0, len(m.logs)-maxLogRecords):]
		}
	})
}

// recycle turns the segments of old logs into spares and removes the other files of these logs.
// It does not touch the log with the raft ID `keep`.
func (d *Dir) recycle(l listing, keep uint64, spares *[]string) error {
	var segments, others []string
	for _, id := range slices.Sorted(maps.Keys(l.segments)) {
		for _, n := range l.segments[id] {
			if id != keep {
				segments = append(segments, (&wal{id: raftlog.Identity{ID: id}}).segmentName(n))
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.snapshots)) {
		for _, n := range l.snapshots[id] {
			if id != keep {
				others = append(others, (&wal{id: raftlog.Identity{ID: id}}).snapshotName(n))
			}
		}
	}
	if err := retire(d.cfg.Files, d.cfg.Path, spares, sparesKept, segments, others); err != nil {
		return fmt.Errorf("%w: making room in %s: %w", raftlog.ErrStorage, d.cfg.Path, err)
	}
	return nil
}

// begun records that a log's first batch is durable, so that its files must exist from now on.
func (d *Dir) begun(id raftlog.Identity) error {
	d.mu.lock()
	defer d.mu.unlock()
	if rec := d.meta.find(id.ID); rec != nil && rec.state != logMade {
		return nil
	}
	return d.meta.change(func(m *metaState) {
		for i := range m.logs {
			if m.logs[i].Identity == id {
				m.logs[i].state = logBegun
			}
		}
	})
}

func (d *Dir) logClosed(id raftlog.Identity, failed error) {
	d.mu.lock()
	defer d.mu.unlock()
	d.log = nil
	if failed != nil {
		d.failed[id.ID] = failed
	}
}

func (d *Dir) newLog(id raftlog.Identity) *wal {
	return &wal{
		fs: d.cfg.Files, dir: d.cfg.Path, id: id, segment: int64(d.cfg.SegmentBytes), logger: d.cfg.Logger,
		random: func(b []byte) { rand.Read(b) }, // never fails
		begun:  func() error { return d.begun(id) },
		closed: func(failed error) { d.logClosed(id, failed) },
		busy:   make(timedMutex, 1), preparing: make(timedMutex, 1),
	}
}
