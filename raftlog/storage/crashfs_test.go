package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
)

// crashFS is an FS in memory that records its operations. From the record it builds the possible
// contents of the disk after a power loss: all synced data, and any part of the rest. It is not
// safe for concurrent use.
type crashFS struct {
	base  map[string][]byte // the durable files when the record began
	names map[string]*inode
	ops   []op
	made  int

	// This function runs before each operation. If it returns an error, the operation fails with
	// that error. If half is set, a failing write writes the first half of its data.
	before func(o op) error
	half   bool
	// This function also runs before each operation. It stands for another goroutine, so it may use
	// the FS itself.
	beside func()
	// Operations of these kinds are not recorded, as if the disk ignored them.
	lies []opKind
}

type inode struct {
	number int
	data   []byte
}

type opKind string

const (
	opCreate   opKind = "create"
	opTruncate opKind = "truncate"
	opWrite    opKind = "write"
	opAllocate opKind = "allocate"
	opSync     opKind = "sync"
	opRename   opKind = "rename"
	opRemove   opKind = "remove"
	opSyncDir  opKind = "syncdir"
)

type op struct {
	kind     opKind
	inode    int
	name, to string
	at       int64
	data     []byte
}

func (o op) String() string {
	return fmt.Sprintf("%s %d %s %s %d+%d", o.kind, o.inode, o.name, o.to, o.at, len(o.data))
}

func newCrashFS(base map[string][]byte) *crashFS {
	c := &crashFS{base: base, names: map[string]*inode{}}
	for _, name := range slices.Sorted(maps.Keys(base)) {
		c.made++
		c.names[name] = &inode{c.made, slices.Clone(base[name])}
	}
	return c
}

func (c *crashFS) do(o op) error {
	if c.beside != nil {
		c.beside()
	}
	if c.before != nil {
		if err := c.before(o); err != nil {
			return err
		}
	}
	if !slices.Contains(c.lies, o.kind) {
		c.ops = append(c.ops, o)
	}
	return nil
}

func notExist(name string) error {
	return &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (c *crashFS) Create(path string) (File, error) {
	name := filepath.Base(path)
	if n := c.names[name]; n != nil {
		if err := c.do(op{kind: opTruncate, inode: n.number, name: name}); err != nil {
			return nil, err
		}
		n.data = nil
		return &crashFile{c, n}, nil
	}
	c.made++
	n := &inode{number: c.made}
	if err := c.do(op{kind: opCreate, inode: n.number, name: name}); err != nil {
		return nil, err
	}
	c.names[name] = n
	return &crashFile{c, n}, nil
}

func (c *crashFS) Open(path string) (File, error) {
	n := c.names[filepath.Base(path)]
	if n == nil {
		return nil, notExist(path)
	}
	return &crashFile{c, n}, nil
}

func (c *crashFS) Rename(from, to string) error {
	f, t := filepath.Base(from), filepath.Base(to)
	if c.names[f] == nil {
		return notExist(from)
	}
	if err := c.do(op{kind: opRename, name: f, to: t}); err != nil {
		return err
	}
	c.names[t] = c.names[f]
	delete(c.names, f)
	return nil
}

func (c *crashFS) Remove(path string) error {
	name := filepath.Base(path)
	if c.names[name] == nil {
		return notExist(path)
	}
	if err := c.do(op{kind: opRemove, name: name}); err != nil {
		return err
	}
	delete(c.names, name)
	return nil
}

func (c *crashFS) List(string) ([]string, error) { return slices.Collect(maps.Keys(c.names)), nil }

func (c *crashFS) Free(string) (uint64, bool) { return 0, false }

func (c *crashFS) SyncDir(string) error { return c.do(op{kind: opSyncDir}) }

// live returns the files after a kill, which loses nothing.
func (c *crashFS) live() map[string][]byte {
	out := map[string][]byte{}
	for name, n := range c.names {
		out[name] = slices.Clone(n.data)
	}
	return out
}

type crashFile struct {
	fs *crashFS
	n  *inode
}

func (f *crashFile) Close() error         { return nil }
func (f *crashFile) Size() (int64, error) { return int64(len(f.n.data)), nil }
func (f *crashFile) Sync() error          { return f.fs.do(op{kind: opSync, inode: f.n.number}) }

func (f *crashFile) ReadAt(b []byte, at int64) (int, error) {
	if at >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.n.data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *crashFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.fs.do(op{kind: opWrite, inode: f.n.number, at: at, data: slices.Clone(b)}); err != nil {
		if f.fs.half {
			b = b[:len(b)/2]
			f.fs.ops = append(f.fs.ops, op{kind: opWrite, inode: f.n.number, at: at, data: slices.Clone(b)})
			f.n.data = overwrite(f.n.data, b, at)
		}
		return 0, err
	}
	f.n.data = overwrite(f.n.data, b, at)
	return len(b), nil
}

func (f *crashFile) Allocate(size int64) error {
	if err := f.fs.do(op{kind: opAllocate, inode: f.n.number, at: size}); err != nil {
		return err
	}
	f.n.data = extend(f.n.data, size)
	return nil
}

func extend(data []byte, size int64) []byte {
	if more := size - int64(len(data)); more > 0 {
		data = append(data, make([]byte, more)...)
	}
	return data
}

func overwrite(data, b []byte, at int64) []byte {
	data = extend(data, at+int64(len(b)))
	copy(data[at:], b)
	return data
}

const sectorBytes = 512

// chance decides whether an unsynced operation, or a sector of an unsynced write, is on the disk.
type chance func() bool

func never() bool  { return false }
func always() bool { return true }
func sometimes(r *rand.Rand, p float64) chance {
	return func() bool { return r.Float64() < p }
}

// image returns the files as they may be if the power fails after the first n operations.
func (c *crashFS) image(n int, on chance) map[string][]byte {
	ops := c.ops[:n]
	synced, dirSynced := map[int]int{}, 0
	for i, o := range ops {
		switch o.kind {
		case opSync:
			synced[o.inode] = i
		case opSyncDir:
			dirSynced = i
		}
	}
	files := map[int][]byte{}
	names := map[string]int{}
	for i, name := range slices.Sorted(maps.Keys(c.base)) {
		names[name], files[i+1] = i+1, slices.Clone(c.base[name])
	}
	lost := map[string]bool{} // names whose later changes are lost, because an earlier change is lost
	for i, o := range ops {
		durable := i < synced[o.inode]
		switch o.kind {
		case opTruncate:
			if durable || on() {
				files[o.inode] = nil
			}
		case opAllocate:
			if durable || on() {
				files[o.inode] = extend(files[o.inode], o.at)
			}
		case opWrite:
			files[o.inode] = writeSectors(files[o.inode], o, durable, on)
		case opCreate, opRename, opRemove:
			if i >= dirSynced && (lost[o.name] || o.to != "" && lost[o.to] || !on()) {
				lost[o.name] = true
				lost[o.to] = o.to != ""
				continue
			}
			changeName(names, o)
		}
	}
	out := map[string][]byte{}
	for name, number := range names {
		out[name] = files[number]
	}
	return out
}

func changeName(names map[string]int, o op) {
	switch o.kind {
	case opCreate:
		names[o.name] = o.inode
	case opRename:
		if n, ok := names[o.name]; ok {
			names[o.to] = n
		}
		delete(names, o.name)
	case opRemove:
		delete(names, o.name)
	}
}

func writeSectors(data []byte, o op, durable bool, on chance) []byte {
	for from := o.at; from < o.at+int64(len(o.data)); {
		to := min((from/sectorBytes+1)*sectorBytes, o.at+int64(len(o.data)))
		if durable || on() {
			data = overwrite(data, o.data[from-o.at:to-o.at], from)
		}
		from = to
	}
	return data
}

var errInjected = errors.New("injected")
