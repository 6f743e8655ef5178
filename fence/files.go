package fence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/mortise-lock/mortise"
)

// Files is a [Store] in a directory, for several processes of one machine, or for one process that
// must remember across restarts. Each resource keeps two small files there forever, a mark and a
// lock. Files is also a [Section]: Do runs one fn of a resource at a time on the whole machine. Its
// value may be copied and is safe for concurrent use.
//
// The notes of [WriteFile] on system locks, synced marks and network file systems apply here too.
type Files struct {
	Dir string // created if it does not exist; its parent must exist
}

// Advance implements [Store]. It returns after the mark is on disk.
func (f Files) Advance(ctx context.Context, resource string, token mortise.Token) error {
	return f.Do(ctx, resource, token, func(context.Context) error { return nil })
}

// Do implements [Section]. It holds the lock of the resource while fn runs, whatever the token: an
// fn that hangs blocks all other callers until its process ends. Memory that goroutines share needs
// a [Mark], or a lock of its own.
func (f Files) Do(ctx context.Context, resource string, token mortise.Token, fn func(context.Context) error) error {
	if err := check(resource, token); err != nil {
		return err
	}
	if err := os.Mkdir(f.Dir, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	sum := sha256.Sum256([]byte(resource)) // a resource may have characters and a length that file names may not
	path := filepath.Join(f.Dir, hex.EncodeToString(sum[:]))
	return sidecar{path, resource, 0o600}.do(ctx, token, func() error { return fn(ctx) })
}

// WriteFile replaces the content of the file at path with data, unless a higher token has written
// it: then it returns a *StaleError, whose resource is path. The same token may write any number of
// times. perm is the mode of the file (before umask).
//
// It takes the system lock on path+".lock", compares with the mark in path+".mark", makes the new
// mark durable, and only then renames path+".new", which it has written and synced, to path. So at
// every moment, even after a crash, readers find one whole write, and never a lower token's after a
// higher one's. WriteFile has these limits:
//
//   - It does not notice programs that write the file without WriteFile.
//   - A writer that is stopped between comparing and renaming keeps the lock until its process
//     ends. Others wait for it as long as their ctx allows.
//   - The lock belongs to one machine's kernel (flock; on Windows an unshared open file). On a
//     network file system that does not carry locks between machines it protects nothing: use [Put]
//     or a [Table] there. On systems that have neither kind of lock WriteFile fails with
//     errors.ErrUnsupported.
//   - After a crash between the two steps the mark may be ahead of the file, but not of the present
//     holder's token.
//
// The files .mark and .lock stay; deleting them makes the register forget. If path is a symbolic
// link the link is replaced. On Windows the write fails while a reader has the file open.
func WriteFile(ctx context.Context, path string, token mortise.Token, data []byte, perm os.FileMode) error {
	if _, err := Int64(token); err != nil {
		return err
	}
	return sidecar{path, path, perm}.do(ctx, token, func() error { return replaceFile(path, data, perm) })
}
