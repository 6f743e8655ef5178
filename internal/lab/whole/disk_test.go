package whole

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/raftlog/storage"
)

// disk has the files of one instance's log, in memory. It stays when the instance ends.
type disk struct {
	mu     sync.Mutex // guards all below; never held across a wait
	names  map[string]*file
	synced map[string]*file // the names that survive the loss of power
	life   int              // the life of the instance that may use the disk
	delay  time.Duration    // before each sync
	fault  error            // the error that each write and sync returns
	hangs  chan struct{}    // closed when a hang ends; nil means none
}

// file has the contents in pieces that were written, without the zeros behind them.
type file struct {
	data []byte
	size int64
	undo []piece // what the writes since the last sync have replaced, the last one last
	was  int64   // size at the last sync
}

type piece struct {
	at   int64
	data []byte
}

var (
	errGone  = errors.New("the process of this file system has ended")
	errFault = errors.New("input/output error, by the seed")
)

func newDisk() *disk { return &disk{names: map[string]*file{}, synced: map[string]*file{}} }

// begin ends the earlier life. In the new one the disk has what was written. If the power was lost,
// it has what was synced.
func (d *disk) begin(powerLost bool) storage.FS {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.life++
	d.fault = nil
	if powerLost {
		d.names = maps.Clone(d.synced)
		for _, f := range d.names {
			f.back()
		}
	}
	return &life{d, d.life}
}

func (f *file) back() {
	for _, p := range slices.Backward(f.undo) {
		copy(f.data[p.at:], p.data)
	}
	f.size, f.undo = f.was, nil
	f.data = f.data[:min(int64(len(f.data)), f.size)]
}

// life is the file system of one life of the instance.
type life struct {
	disk *disk
	n    int
}

// do calls f if this life still has the disk. Writes and syncs wait and fail as the faults say.
func (l *life) do(writes, syncs bool, f func() error) error {
	d := l.disk
	d.mu.Lock()
	hangs, delay := d.hangs, d.delay
	d.mu.Unlock()
	if writes && hangs != nil {
		<-hangs
	}
	if syncs && delay > 0 {
		time.Sleep(delay)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.life != l.n:
		return errGone
	case writes && d.fault != nil:
		return d.fault
	}
	return f()
}

func (l *life) Create(path string) (storage.File, error) {
	var f *file
	err := l.do(true, false, func() error {
		f = &file{}
		l.disk.names[filepath.Base(path)] = f
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &handle{l, f}, nil
}

func (l *life) Open(path string) (storage.File, error) {
	var f *file
	err := l.do(false, false, func() error {
		if f = l.disk.names[filepath.Base(path)]; f == nil {
			return &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &handle{l, f}, nil
}

func (l *life) Rename(from, to string) error {
	return l.do(true, false, func() error {
		if filepath.Base(to) == "meta.db" { // bbolt has a real file
			return storage.OSFS().Rename(from, to)
		}
		f := l.disk.names[filepath.Base(from)]
		if f == nil {
			return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
		}
		delete(l.disk.names, filepath.Base(from))
		l.disk.names[filepath.Base(to)] = f
		return nil
	})
}

func (l *life) Remove(path string) error {
	return l.do(true, false, func() error {
		if l.disk.names[filepath.Base(path)] == nil {
			return &fs.PathError{Op: "remove", Path: path, Err: fs.ErrNotExist}
		}
		delete(l.disk.names, filepath.Base(path))
		return nil
	})
}

func (l *life) List(string) (names []string, err error) {
	err = l.do(false, false, func() error {
		names = slices.Sorted(maps.Keys(l.disk.names))
		return nil
	})
	return names, err
}

func (l *life) SyncDir(string) error {
	return l.do(true, true, func() error {
		l.disk.synced = maps.Clone(l.disk.names)
		return nil
	})
}

func (l *life) Free(string) (uint64, bool) { return 0, false }

type handle struct {
	life *life
	file *file
}

func (h *handle) Close() error { return nil }

func (h *handle) Size() (size int64, err error) {
	err = h.life.do(false, false, func() error { size = h.file.size; return nil })
	return size, err
}

func (h *handle) Allocate(size int64) error {
	return h.life.do(true, false, func() error { h.file.size = max(h.file.size, size); return nil })
}

func (h *handle) Sync() error {
	return h.life.do(true, true, func() error {
		h.file.undo, h.file.was = nil, h.file.size
		return nil
	})
}

func (h *handle) ReadAt(b []byte, at int64) (n int, err error) {
	err = h.life.do(false, false, func() error {
		n = int(max(0, min(int64(len(b)), h.file.size-at)))
		clear(b[:n])
		if at < int64(len(h.file.data)) {
			copy(b[:n], h.file.data[at:])
		}
		if n < len(b) {
			return io.EOF
		}
		return nil
	})
	return n, err
}

func (h *handle) WriteAt(b []byte, at int64) (int, error) {
	err := h.life.do(true, false, func() error {
		f, end := h.file, at+int64(len(b))
		if more := end - int64(len(f.data)); more > 0 {
			f.data = append(f.data, make([]byte, more)...)
		}
		f.undo = append(f.undo, piece{at, slices.Clone(f.data[at:end])})
		copy(f.data[at:], b)
		f.size = max(f.size, end)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(b), nil
}
