package storage

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// FS is the file operations that the log of a Dir is made of: a test puts one in between that
// records, fails or delays them, and plays what a power loss leaves. Paths are absolute or relative
// as Config.Path is. Safe for concurrent use as far as different files go. The error of any
// operation is final for the log that wanted it.
//
// bbolt maps its file into memory and does not go through it, except for the rename and the
// directory sync at its creation.
type FS interface {
	// Create makes an empty file for reading and writing, in the place of what had that name.
	Create(path string) (File, error)

	// Open opens a file that is there for reading and writing.
	Open(path string) (File, error)

	// Rename gives a closed file another name, and replaces what had that name.
	Rename(from, to string) error

	// Remove deletes a closed file.
	Remove(path string) error

	// List returns the names of the files in a directory, in any order.
	List(dir string) ([]string, error)

	// SyncDir makes what was created, renamed and removed in a directory durable.
	SyncDir(dir string) error

	// Free returns how many bytes this process may still write to the file system of a directory,
	// and false where the system does not report it.
	Free(dir string) (bytes uint64, known bool)
}

// File is one open file of an FS. One goroutine uses it at a time.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer

	// Allocate makes the file size bytes long and reserves the room, so that writing there later
	// cannot find the disk full where the file system can promise that. What was not written reads
	// as zeros.
	Allocate(size int64) error

	// Size returns the length in bytes.
	Size() (int64, error)

	// Sync makes the content and the length durable.
	Sync() error
}

// osFS is the FS of the operating system.
type osFS struct{}

// OSFS returns the FS of the operating system, for a test double to wrap. It is the default of a
// Dir.
func OSFS() FS { return osFS{} }

const (
	filePerm fs.FileMode = 0o600
	dirPerm  fs.FileMode = 0o700
)

func (osFS) Create(path string) (File, error) { return asFile(createOS(path)) }
func (osFS) Open(path string) (File, error) {
	return asFile(os.OpenFile(path, os.O_RDWR|noFollow, filePerm))
}
func (osFS) Rename(from, to string) error { return os.Rename(from, to) }
func (osFS) Remove(path string) error     { return os.Remove(path) }
func (osFS) SyncDir(dir string) error     { return syncDir(dir) }

func (osFS) Free(dir string) (bytes uint64, known bool) { return freeBytes(dir) }

func (osFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// createOS makes an empty file. Where a name is taken it is freed, not opened: a symbolic link
// could have the file that it leads to emptied.
func createOS(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|noFollow, filePerm)
}

func asFile(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

type osFile struct{ *os.File }

func (f osFile) Sync() error { return syncData(f.File) }

func (f osFile) Allocate(size int64) error { return allocate(f.File, size) }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// zeroFill is how a file gets its room where the system cannot reserve it.
func zeroFill(f *os.File, size int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	zeros := make([]byte, 1<<20)
	for at := info.Size(); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(size-at, int64(len(zeros)))], at); err != nil {
			return err
		}
	}
	return nil
}

// readAll reads a whole file.
func readAll(fsys FS, path string) (_ []byte, err error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return content(f)
}

func content(f File) ([]byte, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err == io.EOF && int64(n) == size {
		err = nil
	}
	return b, err
}
