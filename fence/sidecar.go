package fence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

type sidecar struct {
	path     string
	resource string
	perm     os.FileMode
}

// do takes the system lock and, if token is admitted, writes the mark to disk and then runs fn.
func (s sidecar) do(ctx context.Context, token mortise.Token, fn func() error) (err error) {
	unlock, err := lockFile(ctx, s.path+".lock", s.perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	highest, err := s.read()
	if err != nil {
		return err
	}
	if token < highest {
		return &StaleError{Resource: s.resource, Token: token, Highest: highest}
	}
	if token > highest {
		if err := s.write(token); err != nil {
			return err
		}
	}
	return fn()
}

// markFormat is the first line of a mark. The second line is the token, and the third line is the
// quoted resource.
const markFormat = "mortise fence 1"

func (s sidecar) write(token mortise.Token) error {
	text := fmt.Sprintf("%s\n%d\n%s\n", markFormat, token, strconv.Quote(s.resource))
	return replaceFile(s.path+".mark", []byte(text), s.perm)
}

// read returns the highest token, or 0 if there is no mark file. An invalid file is an error,
// because it may be a damaged mark.
func (s sidecar) read() (mortise.Token, error) {
	text, err := os.ReadFile(s.path + ".mark")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) != 4 || lines[0] != markFormat {
		return 0, fmt.Errorf("fence: %s.mark is not a mark of this version: find out what wrote it before you remove it",
			s.path)
	}
	token, err := ParseToken(lines[1])
	if err != nil {
		return 0, fmt.Errorf("fence: %s.mark is damaged: %w", s.path, err)
	}
	return token, nil
}

// replaceFile replaces the content of the file at path atomically and durably. The caller must hold
// the lock, so a fixed name for the temporary file is enough.
func replaceFile(path string, data []byte, perm os.FileMode) error {
	fresh := path + ".new"
	// A file that a crash has left could have other permissions, so it is not reused.
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename in dir durable. On Windows a rename is durable without it.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// The shortest and the longest pause between two tries to lock a file. A single blocking call would
// not return when the context ends.
const (
	pauseMin = time.Millisecond
	maxPause = 20 * time.Millisecond
)

// lockFile waits for the system lock on the file at path. It creates the file if needed, and never
// removes it, because two processes could then lock two different files of that name.
func lockFile(ctx context.Context, path string, perm os.FileMode) (unlock func() error, err error) {
	for wait := pauseMin; ; wait = min(2*wait, maxPause) {
		f, err := tryLockFile(path, perm|0o600)
		if err != nil {
			return nil, err
		}
		if f != nil {
			return f.Close, nil // closing the file releases the system lock
		}
		if err := pause(ctx, wait); err != nil {
			return nil, fmt.Errorf("fence: another writer has %s: %w", path, err)
		}
	}
}
