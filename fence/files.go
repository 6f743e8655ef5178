package fence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-lock/mortise"
)

// Files is a [Store] in a directory. Use it for several processes of one machine, or for one
// process whose marks must survive a restart. Each resource has two small files, a mark and a lock,
// which are never deleted. Files is also a [Section]: Do runs at most one fn of a resource at a
// time on the whole machine. Files is safe for concurrent use and may be copied.
//
// The limits of [WriteFile] concerning system locks and network file systems apply to Files too.
type Files struct {
	// Dir is an absolute path, because a relative one would name another directory, without marks,
	// after a change of the working directory. It is created if it does not exist; the parent
	// directory must exist.
	Dir string
}

// Advance implements [Store]. It returns after the mark is on disk.
func (f Files) Advance(ctx context.Context, resource string, token mortise.Token) error {
	return f.Do(ctx, resource, token, func(context.Context) error { return nil })
}

// Do implements [Section]. It holds the system lock of the resource while fn runs, even if the
// tokens are equal. If fn hangs, all other callers wait until its process ends. The system lock
// does not order memory accesses: goroutines that share memory also need a [Mark] or a mutex.
func (f Files) Do(ctx context.Context, resource string, token mortise.Token, fn func(context.Context) error) error {
	if err := check(resource, token); err != nil {
		return err
	}
	if !filepath.IsAbs(f.Dir) {
		return fmt.Errorf("fence: Files.Dir is %q, which is not absolute: pass the result of filepath.Abs, computed once "+
			"at the start", f.Dir)
	}
	if err := os.Mkdir(f.Dir, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	sum := sha256.Sum256([]byte(resource)) // a name may be too long or invalid for a file
	path := filepath.Join(f.Dir, hex.EncodeToString(sum[:]))
	return sidecar{path, resource, 0o600}.do(ctx, token, func() error { return fn(ctx) })
}

// WriteFile replaces the content of the file at path with data. If a higher token has written the
// file, WriteFile returns a *StaleError, whose resource is path. The same token may write any
// number of times. perm is the mode of the file (before umask).
//
// WriteFile takes the system lock on path+".lock" and compares token with the mark in path+".mark".
// It then writes and syncs the new mark and path+".new", and renames path+".new" to path. So
// readers always find one complete write, even after a crash, and never a lower token after a
// higher token. WriteFile has these limits:
//
//   - It does not notice programs that write the file without WriteFile.
//   - A writer that is stopped under the lock keeps the lock until its process ends.
//   - The lock belongs to one machine's kernel (flock; on Windows an unshared open file). On a
//     network file system that does not share locks between machines, the lock protects nothing:
//     use [Put] or a [Table] there. On systems without such a lock, WriteFile fails with
//     errors.ErrUnsupported.
//   - After a crash the mark may have a higher token than the file, but never a higher token than
//     the present holder.
//
// The files .mark and .lock are never deleted; if you delete them, old tokens are admitted again.
// If path is a symbolic link, the link is replaced. On Windows WriteFile fails while a reader has
// the file open.
func WriteFile(ctx context.Context, path string, token mortise.Token, data []byte, perm os.FileMode) error {
	if _, err := Int64(token); err != nil {
		return err
	}
	full, err := filepath.Abs(path) // all files of one call are in one directory
	if err != nil {
		return err
	}
	return sidecar{full, path, perm}.do(ctx, token, func() error { return replaceFile(full, data, perm) })
}
