package storage

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/mortise-lock/mortise/raftlog"
)

// metaTimeout limits bbolt's wait for its own lock. Usually that lock is free, because lockFile
// has already excluded other processes.
const metaTimeout = 2 * time.Second

// meta is the file meta.db, the only use of bbolt. bbolt has no checksums on its data, panics on
// damage, and reads through a memory map that can fault. Therefore:
//
//   - All records are one value with a CRC32C, which is decoded once at open. One value needs no
//     branch pages, which damage could turn into an endless cycle.
//   - Every access runs in the function guarded.
//   - Each change is committed twice. If the newer of bbolt's two meta pages is damaged, bbolt uses
//     the older one, so both must contain the change.
//   - The free list is kept in the file. bbolt rebuilds a missing free list on a goroutine whose
//     panic cannot be recovered.
//   - The file is created under another name and renamed, because a power loss during bbolt's own
//     creation leaves an unusable file.
//   - The first error is final.
//
// A meta is not safe for concurrent use.
type meta struct {
	metaState
	path   string
	db     *bbolt.DB
	file   *os.File // file of db, to be closed if db has failed
	failed error
}

const (
	metaName   = "meta.db"
	metaBucket = "mortise"
	metaKey    = "records"
)

// guarded runs f, which uses bbolt, and returns a panic or a fault in mapped memory as an error.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: bbolt: %v", raftlog.ErrPanic, p)
		}
	}()
	return f()
}

func openBolt(path string) (db *bbolt.DB, file *os.File, err error) {
	err = guarded(func() (err error) {
		db, err = bbolt.Open(path, filePerm, &bbolt.Options{
			Timeout: metaTimeout, FreelistType: bbolt.FreelistArrayType, PageSize: 4096,
			OpenFile: func(name string, flag int, perm os.FileMode) (_ *os.File, err error) {
				file, err = os.OpenFile(name, flag|noFollow, perm)
				return file, err
			},
		})
		return err
	})
	if errors.Is(err, raftlog.ErrPanic) && file != nil {
		abandon(file) // bbolt's Close could wait for its locks forever
	}
	return db, file, err
}

func createMeta(fsys FS, dir string) error {
	temp := filepath.Join(dir, metaName+".tmp")
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %w", raftlog.ErrStorage, err)
	}
	db, file, err := openBolt(temp)
	if err != nil {
		return fmt.Errorf("%w: making %s: %w", raftlog.ErrStorage, temp, err)
	}
	m := &meta{path: temp, db: db, file: file}
	if err := m.change(func(*metaState) {}); err != nil {
		return errors.Join(err, m.close())
	}
	if err := m.close(); err != nil {
		return fmt.Errorf("%w: making %s: %w", raftlog.ErrStorage, temp, err)
	}
	if err := fsys.Rename(temp, filepath.Join(dir, metaName)); err != nil {
		return fmt.Errorf("%w: %w", raftlog.ErrStorage, err)
	}
	if err := fsys.SyncDir(dir); err != nil {
		return fmt.Errorf("%w: %w", raftlog.ErrStorage, err)
	}
	return nil
}

func openMeta(path string) (*meta, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%w: %w", raftlog.ErrStorage, err)
	} else if info.Size() == 0 { // bbolt would initialize an empty file
		return nil, fmt.Errorf("%w: %s is empty; %s", raftlog.ErrCorrupt, path, recoveryHint)
	}
	db, file, err := openBolt(path)
	var io *os.PathError
	if errors.As(err, &io) || errors.Is(err, bbolt.ErrTimeout) {
		return nil, fmt.Errorf("%w: %s: %w", raftlog.ErrStorage, path, err)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %s: %w; %s", raftlog.ErrCorrupt, path, err, recoveryHint)
	}
	m := &meta{path: path, db: db, file: file}
	err = guarded(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(metaBucket))
			if b == nil {
				return errors.New("the records are missing")
			}
			// Decode a copy, because the values are used after the transaction has ended.
			m.metaState, err = decodeMeta(slices.Clone(b.Get([]byte(metaKey))))
			return err
		})
	})
	if err != nil {
		err = fmt.Errorf("%w: %s: %w; %s", raftlog.ErrCorrupt, path, err, recoveryHint)
		m.failed = err
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (m *meta) put(records map[string][]byte) error {
	for name := range records {
		if name == "" || len(name) > maxMetaName {
			return fmt.Errorf("storage: a record's name must be 1 to %d bytes long, not %d", maxMetaName, len(name))
		}
	}
	return m.change(func(s *metaState) {
		for name, value := range records {
			if s.records[name] = slices.Clone(value); value == nil {
				delete(s.records, name)
			}
		}
	})
}

// change makes one change durable, completely or not at all.
func (m *meta) change(f func(*metaState)) error {
	if m.failed != nil {
		return m.failed
	}
	next := metaState{generation: m.generation + 1, logs: slices.Clone(m.logs), records: maps.Clone(m.records)}
	if next.records == nil {
		next.records = map[string][]byte{}
	}
	f(&next)
	value := next.encode()
	if len(value) > maxMetaBytes {
		return fmt.Errorf("storage: the records in %s would take %d bytes, more than %d", m.path, len(value),
			maxMetaBytes)
	}
	for range 2 {
		if err := m.commit(value); err != nil {
			m.failed = fmt.Errorf("%w: writing %s: %w; nothing more is written there: free or repair the disk and "+
				"start the instance again", raftlog.ErrStorage, m.path, err)
			return m.failed
		}
	}
	m.metaState = next
	return nil
}

func (m *meta) commit(value []byte) error {
	return guarded(func() error {
		return m.db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte(metaBucket))
			if err != nil {
				return err
			}
			return b.Put([]byte(metaKey), value)
		})
	})
}

// close closes the file. After a failure it does not call bbolt's Close, which may wait forever.
// The mapping of a few pages then stays until the process ends.
func (m *meta) close() error {
	if m.failed != nil {
		abandon(m.file) // the failure has been reported
		return nil
	}
	m.failed = fmt.Errorf("%w: %s", raftlog.ErrClosed, m.path)
	return guarded(m.db.Close)
}
