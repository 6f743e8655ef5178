package storage

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// FS performs the file operations of a Dir's log. A test can wrap it to record, fail or delay them
// and to simulate a power loss. Paths are as in Config.Path. An FS must be safe for concurrent use
// on different files. An error is final for the log. bbolt does not use the FS, except for the
// rename and the directory sync when meta.db is created.
type FS interface {
	// Create creates an empty file for reading and writing. It replaces an existing file.
	Create(path string) (File, error)

	// Open opens an existing file for reading and writing.
	Open(path string) (File, error)

	// Rename renames a closed file. It replaces a file that has the new name.
	Rename(from, to string) error

	// Remove deletes a closed file.
	Remove(path string) error

	// List returns the names of the files in a directory, in any order.
	List(dir string) ([]string, error)

	// SyncDir makes creations, renames and removals in a directory durable.
	SyncDir(dir string) error

	// Free returns the number of bytes that this process may still write to the file system of a
	// directory. known is false if the system does not report the number.
	Free(dir string) (bytes uint64, known bool)
}

// File is an open file of an FS. Only one goroutine at a time uses it.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer

	// Allocate extends the file to size bytes and reserves the space. Where the file system
	// supports it, later writes below size cannot fail for lack of space. Unwritten bytes read as
	// zeros.
	Allocate(size int64) error

	Size() (int64, error)

	// Sync makes the contents and the length durable.
	Sync() error
}

type osFS struct{}

// OSFS returns the FS of the operating system.
func OSFS() FS { return osFS{} }

func (osFS) Create(path string) (File, error) { return asFile(createOS(path)) }

func (osFS) Open(path string) (File, error) {
	return asFile(os.OpenFile(path, os.O_RDWR|noFollow, filePerm))
}

func (osFS) Rename(from, to string) error { return os.Rename(from, to) }

func (osFS) Remove(path string) error { return os.Remove(path) }

func (osFS) SyncDir(dir string) error { return syncDir(dir) }

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

// createOS creates an empty file. It removes an existing file instead of opening it, because
// opening a symbolic link would truncate its target.
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
