package storage

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/mortise-lock/mortise/raftlog"
)

const (
	formerName = "incarnation"
	// formerMagic begins the file incarnation. The site of its writer, the seed of the key, and a
	// SHA-256 of all before it follow.
	formerMagic = "mortise incarnation 1\n"
	maxFormer   = 512 // bytes of the file
)

// RunDir is a directory that outlives a process without a Dir, and need not outlive the machine. It
// shows the next process that this one has ended.
//
//	lock             held while the directory is open
//	incarnation      the Site, and the private key of the last incarnation that has joined a group
//	incarnation.tmp  being created; ignored and replaced
//
// It has no log, and nothing in it is synced: after a loss of power the boot of the machine is
// another one, so the file proves nothing. Only one key is kept. An incarnation that has restarted
// in place has ended the locks of the one before it, and the sessions of both end with the process,
// but those of the former are in a group that has ended, or were never opened.
//
// A RunDir is not safe for concurrent use. OpenRun and Close wait for the disk.
type RunDir struct {
	path   string
	files  FS
	logger *slog.Logger
	lock   io.Closer
	site   string
	former []byte
	stored chan struct{} // closed when the last Keep has ended; nil before the first
	kept   []byte        // owned by the Keep that runs
}

// OpenRun opens a run directory, or creates it, but not its parent. The caller must close it. It
// refuses a second process, with a message that explains what to do. If the file incarnation is
// damaged, it writes a warning and goes on. Nil means OSFS() and slog.Default().
func OpenRun(path string, files FS, logger *slog.Logger) (*RunDir, error) {
	if files == nil {
		files = OSFS()
	}
	if logger == nil {
		logger = slog.Default()
	}
	lock, err := lockDir(path)
	if err != nil {
		return nil, err
	}
	warnOpen(path, logger)
	d := &RunDir{path: path, files: files, logger: logger, lock: lock, site: siteOf(lock)}
	if !d.Proves() {
		logger.Info("this system or this file system does not show that an earlier process has ended: "+
			"its locks stay taken for the TTL", "path", path)
		return d, nil
	}
	site, seed, err := d.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		logger.Warn("the key of the last process cannot be read: its locks stay taken for the TTL", "path", path,
			"why", err)
	case site == d.site:
		d.former = seed
	}
	return d, nil
}

// Proves reports whether this system and this file system show that an earlier process has ended.
func (d *RunDir) Proves() bool { return d.site != "" }

// Former returns the seed of the key of the last incarnation of an earlier process, if that process
// has certainly ended, see Dir.Site. Otherwise it returns nil.
func (d *RunDir) Former() []byte { return d.former }

// Keep stores the seed of the present incarnation, and returns at once: nothing must wait for this
// disk. If the process ends before the seed is stored, or if it cannot be stored, which Keep logs,
// the next process shows nothing that is untrue, but perhaps nothing of this incarnation. The
// directory must be open.
func (d *RunDir) Keep(seed []byte) {
	if !d.Proves() {
		return
	}
	before, done := d.stored, make(chan struct{})
	d.stored = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		d.keep(seed)
	}()
}

func (d *RunDir) keep(seed []byte) {
	if bytes.Equal(seed, d.kept) {
		return
	}
	if err := d.write(seed); err != nil {
		d.logger.Warn("the key of this process cannot be stored: after a crash its locks stay taken for the TTL", "path",
			d.path, "why", err)
		return
	}
	d.kept = bytes.Clone(seed)
}

// Close unlocks the directory once all seeds are stored. If that takes more than 5 s, it returns
// raftlog.ErrHung. The directory then stays locked until the process ends, because the hanging
// write may still happen.
func (d *RunDir) Close() error {
	if d.stored != nil {
		timer := time.NewTimer(maxCloseWait)
		defer timer.Stop()
		select {
		case <-d.stored:
		case <-timer.C:
			return fmt.Errorf("%w: the disk of %s has not answered for %v", raftlog.ErrHung, d.path, maxCloseWait)
		}
	}
	return d.lock.Close()
}

func (d *RunDir) read() (site string, seed []byte, err error) {
	path := filepath.Join(d.path, formerName)
	if info, err := os.Lstat(path); err != nil {
		return "", nil, err
	} else if !info.Mode().IsRegular() || info.Size() > maxFormer {
		return "", nil, fmt.Errorf("%s is no regular file of at most %d bytes", path, maxFormer)
	}
	text, err := readAll(d.files, path)
	if err != nil {
		return "", nil, err
	}
	return decodeFormer(text)
}

func (d *RunDir) write(seed []byte) error {
	path := filepath.Join(d.path, formerName)
	f, err := d.files.Create(path + ".tmp")
	if err != nil {
		return err
	}
	_, err = f.WriteAt(encodeFormer(d.site, seed), 0)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return d.files.Rename(path+".tmp", path)
}

func encodeFormer(site string, seed []byte) []byte {
	text := append([]byte(formerMagic+site), seed...)
	sum := sha256.Sum256(text)
	return append(text, sum[:]...)
}

func decodeFormer(text []byte) (site string, seed []byte, err error) {
	if len(text) < len(formerMagic)+ed25519.SeedSize+sha256.Size || len(text) > maxFormer ||
		!bytes.HasPrefix(text, []byte(formerMagic)) {
		return "", nil, errors.New("the file is none of this library, or it is cut off")
	}
	end := len(text) - sha256.Size
	if sum := sha256.Sum256(text[:end]); !bytes.Equal(sum[:], text[end:]) {
		return "", nil, errors.New("the file is damaged")
	}
	return string(text[len(formerMagic) : end-ed25519.SeedSize]), bytes.Clone(text[end-ed25519.SeedSize : end]), nil
}
