package storage

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/raftlog"
)

func (w *wal) Save(b raftlog.Batch) error {
	w.busy.lock()
	defer w.busy.unlock()
	if err := w.usable(); err != nil {
		return err
	}
	if err := w.accepts(b); err != nil {
		return w.fail("saving", err)
	}
	if b.Identity == nil && b.HardState == nil && b.Snapshot == nil && len(b.Entries) == 0 {
		return nil
	}
	if err := w.save(b); err != nil {
		return w.fail("saving", err)
	}
	return nil
}

// accepts validates a batch before anything is written.
func (w *wal) accepts(b raftlog.Batch) error {
	if (b.Identity != nil) == w.replay.begun {
		return errors.New("the first batch of a log, and no other, must name the log")
	}
	if b.Identity != nil && *b.Identity != w.id {
		return fmt.Errorf("the batch is the first of replica %x of group %x, but the log is that of replica %x of "+
			"group %x",
			b.Identity.ID, b.Identity.Group, w.id.ID, w.id.Group)
	}
	for i, e := range b.Entries {
		if e.GetIndex() != b.Entries[0].GetIndex()+uint64(i) {
			return fmt.Errorf("entry %d is at the place of entry %d", e.GetIndex(),
				b.Entries[0].GetIndex()+uint64(i))
		}
	}
	return nil
}

func (w *wal) save(b raftlog.Batch) error {
	first := w.buf[:0]
	it := items{identity: b.Identity, hard: b.HardState}
	frame := append(first, make([]byte, frameHeadBytes)...)
	if it.identity != nil {
		frame = appendIdentity(frame, *it.identity)
	}
	if it.hard != nil {
		frame = appendHardState(frame, it.hard)
	}
	if b.Snapshot != nil {
		m, err := w.snapshotOf(b)
		if err != nil {
			return err
		}
		term, known := w.termAt(m.index)
		it.snapshot, it.keeps = &m, known && term == m.term
		frame = appendSnapshot(frame, m, it.keeps)
	}
	f := w.replay
	if err := f.apply(it, w.id, w.header.sequence); err != nil {
		return err
	}
	entries := b.Entries
	for len(entries) > 0 && entries[0].GetIndex() <= f.base() {
		entries = entries[1:]
	}
	if len(entries) > 0 {
		if err := f.gap(entries[0].GetIndex()); err != nil {
			return err
		}
		frame = appendEntries(frame, entries)
	}
	w.keepBuffer(frame)
	if err := w.write(frame); err != nil {
		return err
	}
	return w.saved(b, it, entries)
}

// saved updates the state after the frame of a batch is durable.
func (w *wal) saved(b raftlog.Batch, it items, entries []*raftpb.Entry) error {
	old := w.snapshot
	it.first, it.entries = 0, entries
	if len(entries) > 0 {
		it.first = entries[0].GetIndex()
	}
	// Read the sequence only now, because the write may have begun a new segment.
	if err := w.apply(it, w.id, w.header.sequence); err != nil {
		return err
	}
	if b.Identity != nil && w.begun != nil {
		if err := w.begun(); err != nil {
			return err
		}
	}
	if it.snapshot == nil {
		return nil
	}
	return w.release(old, it.snapshot)
}

func (w *wal) keepBuffer(frame []byte) {
	if w.buf = frame[:0]; cap(frame) > 1<<20 {
		w.buf = nil
	}
}

// Close writes the marks after the last frame and closes the files. Acknowledged data is safe
// without the marks. If a Save, Load or Prepare has not returned, Close does nothing and returns
// ErrHung.
func (w *wal) Close() error {
	hangs := fmt.Errorf("%w: the disk of %s has not answered yet", raftlog.ErrHung, w.dir)
	if !w.preparing.tryLock() {
		return hangs
	}
	defer w.preparing.unlock()
	if !w.busy.tryLock() {
		return hangs
	}
	defer w.busy.unlock()
	if w.finished {
		return nil
	}
	w.finished = true
	var err error
	if w.failed == nil && w.file != nil {
		if err = w.mark(); err != nil {
			err = w.fail("closing", err)
		}
	}
	if w.file != nil {
		err = errors.Join(err, w.file.Close())
		w.file = nil
	}
	if w.closed != nil {
		w.closed(w.failed)
	}
	return err
}
