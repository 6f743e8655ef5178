package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/raftlog"
)

// wal is the Store of a Dir. It keeps the log of one replica in segment files, which are reserved
// in advance and reused, and its snapshot in a separate file.
//
//	segment:  header (4096 bytes) │ frame │ frame │ ... │ seal │ free     wal_header.go, wal_frame.go
//	frame:    head (32 bytes) │ identity, hard state, snapshot, entries     wal_items.go
//
// A Save is one frame: one write and one sync. After a crash the frame exists completely or not at
// all. Reading replays all frames in order (wal_replay.go).
//
// # Steps, and a crash between any two of them
//
//   - A snapshot: 1. its file is written and synced in pieces, then the directory is synced; 2. the
//     frame that names the file is written and synced; 3. the segments without entries after the
//     snapshot become spares, and the file of the previous snapshot is removed. Open removes a file
//     that no frame names, and completes step 3. Step 1 is Prepare, concurrent with Saves. The next
//     Prepare removes the old file and surplus spares. A snapshot of another replica is written
//     within its Save.
//   - The next segment: 1. the header is written to a spare or a new file and synced; 2. the file
//     is renamed and the directory synced; 3. the seal is written to the old segment and synced; 4.
//     frames are written to the new segment. If the last segment has no frames and the one before
//     it has no seal, Open does step 3.
//   - A reused segment: it is renamed to a spare and the directory is synced, and only then is its
//     header overwritten.
//
// # A torn frame, or a damaged one?
//
// A frame is written only after the frame before it is durable. So a crash leaves at most the last
// frame incomplete. That frame was never acknowledged and may be cut off. All other damage must be
// refused, because other replicas rely on the lost vote or entry. An invalid frame is damaged, and
// not torn by a crash, if
//
//   - a head with a higher number and the salt of the segment exists anywhere after it,
//   - the segment is sealed, or a later segment has frames,
//   - it differs from the expected frame in one bit; a lost sector cannot cause this, because
//     payloads are whitened, or
//   - its head is intact but impossible at this place.
//
// Damage to the last frame would look like a torn frame, because nothing follows it. Therefore
// Close writes two marks after the last frame, the second one in another block of the disk. The
// next open writes the same marks before anything else. Three cases are not detected. The last
// frame looks torn if more than one of its bits is damaged between a crash and the next open. A
// disk may acknowledge a sync and then lose the data. All files of a directory may be restored to
// an earlier state together (see Dir for copies).
//
// A disk is assumed to change only the bytes that are written and to keep synced bytes. A partly
// written sector is assumed to be old, new, or different from both in more than one bit.
//
// After a failed sync the kernel may treat pages as clean although they are not on the disk. The
// store then accepts nothing more. The next open, in the same boot or later, rewrites and syncs the
// last frame, and then writes the marks.
type wal struct {
	fs      FS
	dir     string
	id      raftlog.Identity
	segment int64              // size of a new segment
	random  func([]byte)       // generates salts
	begun   func() error       // called once, when the first batch is durable
	closed  func(failed error) // called by Close
	logger  *slog.Logger
	spares  []string

	// The mutex `busy` guards the fields below. Save and Load hold it. Prepare holds the mutex
	// `preparing`, and for a short time also `busy`. Close waits for neither mutex, because the disk
	// may never answer.
	busy, preparing timedMutex

	files    uint64    // highest number of a snapshot file
	prepared *prepared // snapshot that no frame names yet, or nil
	stale    []string  // names of files to be removed

	replay
	lowest   uint64 // sequence of the oldest segment of the log
	file     File   // the current segment; nil before the first one
	header   header
	at       int64  // offset of the next frame
	next     uint64 // number of the next frame; the first is 1
	buf      []byte
	failed   error // the first error, which is final
	finished bool  // the log is closed
}

const recoveryHint = "this replica cannot go on under its raft ID: remove the whole directory and start the instance " +
	"again, so that it joins as a new member, which may get a vote again; do not restore an older copy: the other " +
	"replicas rely on everything that this one has acknowledged"

func (w *wal) refuse(name string, err error) error {
	if errors.Is(err, raftlog.ErrStorage) {
		return err
	}
	return fmt.Errorf("%w: %s: %w; %s", raftlog.ErrCorrupt, filepath.Join(w.dir, name), err, recoveryHint)
}

// Volatile returns false.
func (w *wal) Volatile() bool { return false }

func (w *wal) Load() (raftlog.State, error) {
	w.busy.lock()
	defer w.busy.unlock()
	if err := w.usable(); err != nil {
		return raftlog.State{}, err
	}
	if w.file == nil {
		return raftlog.State{}, nil
	}
	l, err := list(w.fs, w.dir)
	if err != nil {
		return raftlog.State{}, w.fail("reading the directory", err)
	}
	s, err := w.scan(l.segments[w.id.ID])
	if err != nil {
		return raftlog.State{}, err
	}
	return w.state(s)
}

func (w *wal) state(s *scanned) (st raftlog.State, err error) {
	if !s.begun {
		return raftlog.State{}, nil
	}
	st = raftlog.State{Identity: w.id, HardState: s.hard, Entries: s.entries}
	if s.snapshot != nil {
		st.Snapshot, err = w.readSnapshot(*s.snapshot)
	}
	return st, err
}

func (w *wal) fail(doing string, err error) error {
	if w.failed == nil {
		w.failed = fmt.Errorf("%w: %s in %s: %w; nothing more is written to this log: free or repair the disk and "+
			"start the instance again", raftlog.ErrStorage, doing, w.dir, err)
		w.logger.Warn("the log on disk has failed", "error", w.failed)
	}
	return w.failed
}

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

func checkFrame(size int) error {
	if size > maxFrameBytes {
		return fmt.Errorf("a batch of %d bytes exceeds the largest frame, %d", size, maxFrameBytes)
	}
	return nil
}

func (w *wal) write(frame []byte) error {
	if err := checkFrame(len(frame)); err != nil {
		return err
	}
	if err := w.reserve(int64(len(frame))); err != nil {
		return err
	}
	frame = sealFrame(frame, w.next, w.header.salt)
	if _, err := w.file.WriteAt(frame, w.at); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	w.at += int64(len(frame))
	w.next++
	return nil
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

// markBytes is the distance between the two marks. Damage to one block of a disk must not affect
// both.
const markBytes = 4096

// mark writes two frames without content. The first is durable before the second is written.
func (w *wal) mark() error {
	frame := make([]byte, frameHeadBytes, frameHeadBytes+64+markBytes)
	frame = append(frame, itemMark)
	frame = append(frame, make([]byte, markBytes)...)
	if err := w.write(frame); err != nil {
		return err
	}
	return w.write(append(make([]byte, frameHeadBytes, frameHeadBytes+8), itemMark))
}
