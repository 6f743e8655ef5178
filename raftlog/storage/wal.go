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

// prepared is a durable snapshot that no frame names yet.
type prepared struct {
	mark snapshotMark
	snap *raftpb.Snapshot
}

func (w *wal) refuse(name string, err error) error {
	if errors.Is(err, raftlog.ErrStorage) {
		return err
	}
	return fmt.Errorf("%w: %s: %w; %s", raftlog.ErrCorrupt, filepath.Join(w.dir, name), err, recoveryHint)
}

// Volatile returns false.
func (w *wal) Volatile() bool { return false }

func (w *wal) fail(doing string, err error) error {
	if w.failed == nil {
		w.failed = fmt.Errorf("%w: %s in %s: %w; nothing more is written to this log: free or repair the disk and "+
			"start the instance again", raftlog.ErrStorage, doing, w.dir, err)
		w.logger.Warn("the log on disk has failed", "error", w.failed)
	}
	return w.failed
}

func (w *wal) usable() error {
	if w.failed == nil && w.finished {
		return fmt.Errorf("%w: the log in %s is closed", raftlog.ErrClosed, w.dir)
	}
	return w.failed
}
