package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/raftlog"
)

// Config configures a Dir. A zero field means its documented default.
type Config struct {
	// Path is the path of the directory. Required. Open creates the directory, but not its parent.
	// No other program may put files into it.
	Path string

	// Files does the file operations of the log. Default OSFS().
	Files FS

	// SegmentBytes is the size of the log's segment files. The whole size is reserved when a file
	// is created. 16 KiB to 1 GiB, default 8 MiB.
	SegmentBytes int

	// Logger receives the log lines. Default slog.Default().
	Logger *slog.Logger
}

const (
	lockName = "lock"

	segmentBytesMin = 16 << 10
	maxSegmentBytes = 1 << 30

	// maxCloseWait limits each of the two waits of Close.
	maxCloseWait = 5 * time.Second
)

// Dir is the directory with the data of an instance that must survive its process: the log of one
// replica at a time, and small records of other packages.
//
//	lock               held while the directory is open
//	origin             tells a copied directory from the one that was made here
//	meta.db            records of other packages, and which logs have been here (bbolt)
//	probe              one byte that Look writes, to test the disk
//	wal-<ID>-<seq>     segments of the log of that raft ID
//	snap-<ID>-<n>      its snapshot, and the previous one until the next is written
//	spare-<ID>-<seq>   former segments, to be reused
//	new.tmp, *.tmp     being created; ignored and replaced
//
// The methods are safe for concurrent use. Put, Log, DropLog and Close wait for the disk.
//
// Dir refuses each of the following with a message that explains what to do:
//
//   - a second process
//   - a copy of the directory, which Dir recognizes by the inode number of a file; a copy is not
//     recognized on Windows, FUSE and 9p, or if a whole disk or volume was restored
//   - files of two directories in one
//   - a log whose files are missing
//   - damage that a crash cannot have caused
//
// Dir cannot detect that the whole directory was restored to one of its earlier states. The other
// members of the group detect this, because the replica lacks data that it has acknowledged.
type Dir struct {
	cfg  Config
	lock io.Closer

	lockPath string      // absolute path
	identity os.FileInfo // describes the lock file that was opened
	site     string
	numbered bool
	looking  atomic.Bool // a call of Look has not returned

	mu     timedMutex // guards the fields below; held while waiting for the disk
	meta   *meta
	log    *wal             // the open log, or nil
	failed map[uint64]error // raft ID -> error that ended its log in this process
	closed bool
	hung   error // result of Close if the log hung
}

// Open opens a directory, or creates it. The caller must close it.
func Open(cfg Config) (_ *Dir, err error) {
	cfg.SegmentBytes = cmp.Or(cfg.SegmentBytes, 8<<20)
	if cfg.Path == "" || cfg.SegmentBytes < segmentBytesMin || cfg.SegmentBytes > maxSegmentBytes {
		return nil, fmt.Errorf("storage: a Dir needs a Path, and SegmentBytes from %d to %d, not %q and %d",
			segmentBytesMin, maxSegmentBytes, cfg.Path, cfg.SegmentBytes)
	}
	if cfg.Files == nil {
		cfg.Files = OSFS()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	d := &Dir{cfg: cfg, mu: make(timedMutex, 1), failed: map[uint64]error{}}
	if d.lock, err = lockDir(cfg.Path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.lock.Close())
		}
	}()
	d.site = siteOf(d.lock)
	if err = d.identify(); err != nil {
		return nil, fmt.Errorf("%w: reading %s: %w", raftlog.ErrStorage, d.lockPath, err)
	}
	warnOpen(cfg.Path, cfg.Logger)
	volatile, numbers := mount(cfg.Path)
	d.numbered = numbers
	if volatile {
		cfg.Logger.Warn("the directory is on a tmpfs: it does not survive a reboot, so it adds no durability",
			"path", cfg.Path)
	}
	if numbers {
		if err := checkOrigin(cfg.Path); err != nil {
			return nil, err
		}
	}
	if d.meta, err = d.openMeta(); err != nil {
		return nil, err
	}
	return d, nil
}

// lockDir creates a directory, if it does not exist, and locks it until the result is closed.
func lockDir(path string) (io.Closer, error) {
	switch err := makeDir(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %w: its parent %s does not exist: create it, mount its volume, or correct the path",
			raftlog.ErrStorage, err, filepath.Dir(path))
	case err != nil:
		return nil, fmt.Errorf("%w: %w; give this process a directory that it may write to", raftlog.ErrStorage, err)
	}
	lock, err := lockFile(filepath.Join(path, lockName))
	if errors.Is(err, ErrInUse) {
		return nil, fmt.Errorf("%w: %s is open in another process (or twice in this one): give each instance a "+
			"directory of its own, or stop the other one first", ErrInUse, path)
	} else if err != nil {
		return nil, fmt.Errorf("%w: locking %s: %w; give this process a directory that it may write to",
			raftlog.ErrStorage, path, err)
	}
	return lock, nil
}

func makeDir(path string) error {
	if err := os.Mkdir(path, dirPerm); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// warnOpen logs a warning if other users may enter the directory, because they could replace its
// files.
func warnOpen(path string, logger *slog.Logger) {
	info, err := os.Stat(path)
	if err != nil || noFollow == 0 || info.Mode().Perm()&0o077 == 0 { // Windows has no such modes
		return
	}
	logger.Warn("the directory is open to other users of this machine; close it with chmod 700",
		"path", path, "mode", fmt.Sprintf("%04o", info.Mode().Perm()))
}

// openMeta opens meta.db. It creates the file only if the directory has no log.
func (d *Dir) openMeta() (*meta, error) {
	path := filepath.Join(d.cfg.Path, metaName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		l, err := list(d.cfg.Files, d.cfg.Path)
		if err != nil {
			return nil, fmt.Errorf("%w: reading %s: %w", raftlog.ErrStorage, d.cfg.Path, err)
		}
		if len(l.segments)+len(l.snapshots) > 0 {
			return nil, fmt.Errorf("%w: %s is missing although there are files of a log beside it; %s",
				raftlog.ErrCorrupt, path, recoveryHint)
		}
		if err := createMeta(d.cfg.Files, d.cfg.Path); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", raftlog.ErrStorage, err)
	}
	return openMeta(path)
}

// Put stores the records under their names, all of them or none, and returns when they are durable.
// A nil value removes a record. Names are 1 to 255 bytes long, and all records together take at
// most 4 MiB. The first disk error is final: Put, Get, Log and DropLog return it from then on.
func (d *Dir) Put(records map[string][]byte) error {
	d.mu.lock()
	defer d.mu.unlock()
	if d.closed {
		return d.errClosed()
	}
	return d.meta.put(records)
}

// Get returns the record with this name, or nil if there is none. The caller must not change it.
func (d *Dir) Get(name string) ([]byte, error) {
	d.mu.lock()
	defer d.mu.unlock()
	if d.closed {
		return nil, d.errClosed()
	}
	return d.meta.records[name], d.meta.failed
}

func (d *Dir) errClosed() error {
	return fmt.Errorf("%w: the directory %s", raftlog.ErrClosed, d.cfg.Path)
}

// Close closes the log, if it is open, and unlocks the directory. It may be called more than once.
// If a Save or a Prepare hangs, or another method does not return for 5 s, Close returns
// raftlog.ErrHung. The directory then stays locked until the process ends, because the hanging
// write may still happen.
func (d *Dir) Close() error {
	hangs := fmt.Errorf("%w: the disk of %s has not answered for %v", raftlog.ErrHung, d.cfg.Path, maxCloseWait)
	if !d.mu.lockWithin(maxCloseWait) {
		return hangs
	}
	if d.closed {
		defer d.mu.unlock()
		return d.hung
	}
	d.closed = true
	log := d.log
	d.mu.unlock()
	var err error
	if log != nil {
		err = log.Close() // the log's Close calls a function of d that locks mu
	}
	if !d.mu.lockWithin(maxCloseWait) {
		return hangs
	}
	defer d.mu.unlock()
	if errors.Is(err, raftlog.ErrHung) {
		d.hung = err
		return err
	}
	return errors.Join(err, d.meta.close(), d.lock.Close())
}

// identify stores the identity of the lock file. The file stays open, so that no other file can get
// its inode number.
func (d *Dir) identify() error {
	path, err := filepath.Abs(filepath.Join(d.cfg.Path, lockName))
	if err != nil {
		return err
	}
	d.lockPath = path
	if d.identity, err = os.Stat(path); err != nil {
		return err
	}
	os.SameFile(d.identity, d.identity) // on Windows this call reads and stores the file's number
	return nil
}
