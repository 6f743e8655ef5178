package storage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/raftlog"
)

func (w *wal) Prepare(ctx context.Context, s *raftpb.Snapshot) error {
	w.preparing.lock()
	defer w.preparing.unlock()
	file, stale, err := w.beginPrepare()
	if err != nil {
		return err
	}
	var mark snapshotMark
	if err = retire(w.fs, w.dir, nil, 0, nil, stale); err == nil {
		mark, err = w.writeSnapshot(ctx, file, s)
	}
	if err != nil && ctx.Err() != nil {
		// If the removal fails, the next open removes the file.
		return errors.Join(context.Cause(ctx), w.fs.Remove(filepath.Join(w.dir, w.snapshotName(file))))
	}
	w.busy.lock()
	defer w.busy.unlock()
	if err != nil {
		return w.fail("writing a snapshot", err)
	}
	w.prepared = &prepared{mark, s}
	return nil
}

// beginPrepare returns the number of the snapshot file to write, and the obsolete snapshot files to
// remove first.
func (w *wal) beginPrepare() (file uint64, stale []string, err error) {
	w.busy.lock()
	defer w.busy.unlock()
	if err := w.usable(); err != nil {
		return 0, nil, err
	}
	if w.prepared != nil {
		w.stale = append(w.stale, w.snapshotName(w.prepared.mark.file))
		w.prepared = nil
	}
	stale, w.stale = w.stale, nil
	w.files++
	return w.files, stale, nil
}

func (w *wal) snapshotOf(b raftlog.Batch) (snapshotMark, error) {
	if !b.Prepared {
		w.files++
		return w.writeSnapshot(context.Background(), w.files, b.Snapshot)
	}
	if w.prepared == nil || w.prepared.snap != b.Snapshot {
		return snapshotMark{}, fmt.Errorf("the batch names the snapshot at %d, which was not prepared",
			b.Snapshot.GetMetadata().GetIndex())
	}
	return w.prepared.mark, nil
}
