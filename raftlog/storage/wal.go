package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/raftlog"
)

// wal is the Store of a Dir: the log of one replica in segment files of fixed size, which are
// reserved in advance and used again, and its snapshot in a file of its own.
//
//	segment:  header (4096 bytes) │ frame │ frame │ ... │ seal │ room          wal_header.go, wal_frame.go
//	frame:    head (32 bytes) │ what one Save writes: identity, hard state, snapshot, entries      wal_items.go
//
// A Save is one frame: one write and one sync, and after a crash all of it is there or nothing.
// What is read is the fold of all frames in their order (wal_fold.go): a later entry replaces the
// one at its index and all behind it. A new commit index alone waits for the next frame, or for
// Close.
//
// # Steps, and a crash between any two of them
//
//   - A snapshot: 1. its file, synced piece by piece, then the directory; 2. the frame that names
//     it, synced; 3. the segments that hold nothing behind the new one become spares, and the file
//     of the snapshot before goes. A file that no frame names is removed at open, what 3 left
//     undone is done then. 1 is Prepare, beside any number of Saves, and so is the removal of the
//     file and of spares that are too many, by the next Prepare; only the snapshot of another
//     replica, without which nothing can go on, is written within its Save.
//   - The next segment: 1. a spare or a new file gets a header and is synced; 2. it is renamed,
//     directory synced; 3. the old segment gets its seal, synced; 4. frames go to the new one. At
//     open, a last segment without frames behind one without a seal means that 3 is due.
//   - A spare is renamed and the directory synced before its header is written again.
//
// # A torn frame, or a damaged one?
//
// A frame is written only after the one before it is durable and acknowledged. So a crash leaves at
// most one frame incomplete, it is the last, and it was never acknowledged: it may be cut. Whatever
// else is wrong has been acknowledged and must be refused: cutting there would take back a vote or
// an entry that others count on. What is found at the place of the next frame is therefore damage,
// not the mark of a crash, if
//
//   - a head with a higher number and the salt of the segment stands anywhere behind it (nobody
//     wrote that before this frame was durable),
//   - the segment is sealed or another follows it that has frames,
//   - it is one flipped bit away from the frame that it should be, which no lost sector is, since
//     payloads are whitened, or
//   - its head is intact and does not fit.
//
// The last frame of all has nothing behind it that tells. Therefore Close writes marks behind it,
// the second in another block of the disk, and so does the next open, before anything else happens.
// What remains: the last frame before a crash, damaged in more than one bit between the crash and
// the next open, is taken for torn. A disk that acknowledges a sync and loses what it was to hold
// looks the same. So does a directory whose files were all put back to an earlier time together;
// see Dir for what is noticed of copies.
//
// We assume of a disk that a write to some bytes does not change others, that what was synced
// stays, and that a sector that was not written whole is the old or the new one, or differs from
// both by more than a bit.
//
// After a failed sync the kernel may hold in memory, as clean, what the disk does not have. The
// store is finished then, and the next open, in the same boot or later, writes the last frame once
// more together with its mark before it counts on either.
type wal struct {
	fs      FS
	dir     string
	id      raftlog.Identity
	segment int64              // bytes of a new segment
	random  func([]byte)       // for salts
	begun   func() error       // told once, after the first batch is durable
	closed  func(failed error) // told at Close
	logger  *slog.Logger
	spares  []string

	// busy is held by Save and Load, and guards what follows. preparing is held by Prepare, which
	// takes busy behind it, for moments. Close, which may come from another goroutine, waits for
	// neither: the disk may never answer.
	busy, preparing sync.Mutex

	files    uint64    // highest number of a snapshot's file so far
	prepared *prepared // nil: there is none
	stale    []string  // names of files that nothing needs any more

	fold
	lowest   uint64 // sequence of the oldest segment that is kept
	file     File   // of the current segment; nil before the first
	header   header
	at       int64             // where the next frame goes
	next     uint64            // its number; 1 is the first
	pending  *raftpb.HardState // a commit index that waits for the next frame
	buf      []byte
	failed   error // final
	finished bool  // closed
}

// wayOut ends the message of every refusal to read a log.
const wayOut = "this replica cannot go on under its raft ID: remove the whole directory and start the instance again, it then comes back as a new member, which may get a vote again; restoring an older copy would be worse, since others count on what it has promised since"

func (w *wal) refuse(name string, err error) error {
	if errors.Is(err, raftlog.ErrStorage) {
		return err
	}
	return fmt.Errorf("%w: %s: %w; %s", raftlog.ErrCorrupt, filepath.Join(w.dir, name), err, wayOut)
}

// Volatile reports false: Save waits for the disk.
func (w *wal) Volatile() bool { return false }

// Load reads the log from its files.
func (w *wal) Load() (raftlog.State, error) {
	w.busy.Lock()
	defer w.busy.Unlock()
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

// state is what was read, as a log wants it.
func (w *wal) state(s *scanned) (st raftlog.State, err error) {
	if !s.begun {
		return raftlog.State{}, nil
	}
	st = raftlog.State{Identity: w.id, HardState: s.hard, Entries: s.entries}
	if w.pending != nil {
		st.HardState = w.pending
	}
	if s.snapshot != nil {
		st.Snapshot, err = w.readSnapshot(*s.snapshot)
	}
	return st, err
}

// fail makes an error final.
func (w *wal) fail(doing string, err error) error {
	if w.failed == nil {
		w.failed = fmt.Errorf("%w: %s in %s: %w; nothing more is written to this log: free or repair the disk and start the instance again", raftlog.ErrStorage, doing, w.dir, err)
		w.logger.Warn("the log on disk has failed", "error", w.failed)
	}
	return w.failed
}

// Save makes a batch durable.
func (w *wal) Save(b raftlog.Batch) error {
	w.busy.Lock()
	defer w.busy.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	if err := w.accepts(b); err != nil {
		return w.fail("saving", err)
	}
	if b.Identity == nil && b.Snapshot == nil && len(b.Entries) == 0 && (b.HardState == nil ||
		w.sameVote(b.HardState)) {
		if b.HardState != nil {
			w.pending = b.HardState
		}
		return nil
	}
	if err := w.save(b); err != nil {
		return w.fail("saving", err)
	}
	return nil
}

// accepts refuses what would be a fault of the caller, before anything is written.
func (w *wal) accepts(b raftlog.Batch) error {
	if (b.Identity != nil) == w.fold.begun {
		return errors.New("the first batch of a log must name it, and no other")
	}
	if b.Identity != nil && *b.Identity != w.id {
		return fmt.Errorf("the batch begins replica %x of group %x, but the log is that of replica %x of group %x",
			b.Identity.ID, b.Identity.Group, w.id.ID, w.id.Group)
	}
	for i, e := range b.Entries {
		if e.GetIndex() != b.Entries[0].GetIndex()+uint64(i) {
			return fmt.Errorf("entry %d stands at the place of entry %d", e.GetIndex(),
				b.Entries[0].GetIndex()+uint64(i))
		}
	}
	return nil
}

// sameVote reports whether a hard state differs from the stored one in nothing but its commit
// index.
func (w *wal) sameVote(hs *raftpb.HardState) bool {
	return w.hard != nil && w.hard.GetTerm() == hs.GetTerm() && w.hard.GetVote() == hs.GetVote()
}

// save writes a batch as one frame. The fold goes forward only by what the frame says.
func (w *wal) save(b raftlog.Batch) error {
	first := w.buf[:0]
	it := items{identity: b.Identity, hard: b.HardState}
	frame := append(first, make([]byte, frameHeadBytes)...)
	if it.identity != nil {
		frame = appendIdentity(frame, *it.identity)
	}
	if it.hard == nil {
		it.hard = w.pending
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
	f := w.fold
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

// saved follows a durable frame with what rests on it.
func (w *wal) saved(b raftlog.Batch, it items, entries []*raftpb.Entry) error {
	old := w.snapshot
	it.first, it.entries = 0, entries
	if len(entries) > 0 {
		it.first = entries[0].GetIndex()
	}
	// The sequence is asked for only now: the write may have begun a segment.
	if err := w.apply(it, w.id, w.header.sequence); err != nil {
		return err
	}
	w.pending = nil
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

// keepBuffer keeps the memory of a frame for the next one, unless it is large.
func (w *wal) keepBuffer(frame []byte) {
	if w.buf = frame[:0]; cap(frame) > 1<<20 {
		w.buf = nil
	}
}

// write appends one frame and makes it durable.
func (w *wal) write(frame []byte) error {
	if len(frame) > frameBytesMax {
		return fmt.Errorf("a batch of %d bytes is larger than a frame can be, %d", len(frame), frameBytesMax)
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

// Close writes what waits and a mark behind the last frame, so that its loss would be noticed, and
// closes the files. The data is safe without that: an error is reported and changes nothing. While
// a Save or a Prepare has not returned, Close does nothing but say so.
func (w *wal) Close() error {
	hangs := fmt.Errorf("%w: the disk of %s has not answered yet", raftlog.ErrHung, w.dir)
	if !w.preparing.TryLock() {
		return hangs
	}
	defer w.preparing.Unlock()
	if !w.busy.TryLock() {
		return hangs
	}
	defer w.busy.Unlock()
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

// markBytes is how far apart the two marks stand: damage to one block of a disk cannot reach both,
// nor the last frame and both.
const markBytes = 4096

// mark writes two frames that say nothing, or the commit index that waits. Each is durable before
// the next, as all frames are.
func (w *wal) mark() error {
	frame := make([]byte, frameHeadBytes, frameHeadBytes+64+markBytes)
	if w.pending != nil {
		frame = appendHardState(frame, w.pending)
	}
	frame = append(frame, itemMark)
	frame = append(frame, make([]byte, markBytes)...)
	if err := w.write(frame); err != nil {
		return err
	}
	if w.pending != nil {
		w.hard, w.pending = w.pending, nil
	}
	return w.write(append(make([]byte, frameHeadBytes, frameHeadBytes+8), itemMark))
}
