package fence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/mortise-lock/mortise"
)

// Files is a [Store] in a directory, for several processes of one machine, or for one that must
// remember across its restarts. Each resource has two small files there, a mark and a lock, for
// ever. It is a [Section], too: Do runs one fn of a resource at a time, on the whole machine. Its
// value needs nothing but Dir, may be copied, and is safe for concurrent use.
//
// What [WriteFile] says about locks of the system, synced marks and network file systems holds here
// too.
type Files struct {
	Dir string // is made if it is absent, its parent is not
}

// Advance implements [Store]. It returns when the mark is on the disk.
func (f Files) Advance(ctx context.Context, resource string, token mortise.Token) error {
	return f.Do(ctx, resource, token, func(context.Context) error { return nil })
}

// Do implements [Section]. It holds the lock of the resource while fn runs, whatever the token: an
// fn that hangs holds up everybody else until its process ends. It is for what lies outside the
// process: what goroutines share in memory needs a [Mark], or a lock of its own.
func (f Files) Do(ctx context.Context, resource string, token mortise.Token, fn func(context.Context) error) error {
	if err := check(resource, token); err != nil {
		return err
	}
	if err := os.Mkdir(f.Dir, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	sum := sha256.Sum256([]byte(resource)) // a resource may have characters, and a length, that no file name may have
	path := filepath.Join(f.Dir, hex.EncodeToString(sum[:]))
	return sidecar{path, resource, 0o600}.do(ctx, token, func() error { return fn(ctx) })
}

// WriteFile makes data the content of the file at path, unless a higher token has written it: then
// it returns a *StaleError, whose resource is path. The same token may write any number of times.
// perm is that of the file (before umask).
//
// It takes the lock of the system on path+".lock", compares with the mark in path+".mark", makes
// the mark durable, and only then replaces the file by a rename: data is written under another name
// (path+".new") and synced before. So at every moment, also after a crash, readers find one whole
// write or the one before, and never a lower token's after a higher one's. What is not promised:
//
//   - Somebody who writes the file without WriteFile is not seen.
//   - A writer that is stopped between comparing and renaming keeps the lock, and others wait for
//     it, as long as their ctx allows: they do not overtake it. When its process ends the system
//     lets go of the lock.
//   - The locks are those of one machine's kernel (flock; on Windows a file that is not shared).
//     Network file systems that do not carry them from machine to machine protect nothing: use
//     [Put] or a [Table] there. On systems without either it fails with errors.ErrUnsupported.
//   - After a crash between the two steps the mark may be ahead of the file. Whoever holds the lock
//     then has that token or a higher one.
//
// The files .mark and .lock stay; who deletes them makes the register forget. If path is a symbolic
// link the link is replaced. On Windows a reader that has the file open makes the write fail.
func WriteFile(ctx context.Context, path string, token mortise.Token, data []byte, perm os.FileMode) error {
	if _, err := Int64(token); err != nil {
		return err
	}
	return sidecar{path, path, perm}.do(ctx, token, func() error { return replaceFile(path, data, perm) })
}
