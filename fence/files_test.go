package fence_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
	"github.com/mortise-lock/mortise/fence/fencetest"
)

func TestFiles(t *testing.T) { fencetest.Run(t, fence.Files{Dir: filepath.Join(t.TempDir(), "marks")}) }

// Two Files values with one directory stand for two processes.
func TestFilesRemember(t *testing.T) {
	dir := t.TempDir()
	if err := (fence.Files{Dir: dir}).Advance(t.Context(), "a", 6); err != nil {
		t.Fatal(err)
	}
	if err := (fence.Files{Dir: dir}).Advance(t.Context(), "a", 5); !errors.Is(err, fence.ErrStale) {
		t.Errorf("after a restart: %v", err)
	}
	if err := (fence.Files{Dir: filepath.Join(dir, "no", "parent")}).Advance(t.Context(), "a", 5); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("without a parent directory: %v", err)
	}
}

// A relative Dir would be another directory, without marks, after a change of the working
// directory, and would admit old tokens.
func TestFilesRefuseARelativeDir(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"", "marks", filepath.Join(".", "marks"), filepath.Join("..", "marks")} {
		err := fence.Files{Dir: dir}.Do(t.Context(), "a", 6, func(context.Context) error {
			t.Errorf("Dir %q was used", dir)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "Files.Dir") {
			t.Errorf("Dir %q: %v", dir, err)
		}
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	for _, c := range []struct {
		token mortise.Token
		text  string
		ok    bool
	}{{5, "five", true}, {6, "six", true}, {5, "late", false}, {6, "six again", true}, {1, "later", false}} {
		err := fence.WriteFile(t.Context(), path, c.token, []byte(c.text), 0o640)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, fence.ErrStale) {
			t.Errorf("token %d: %v, admitted should be %v", c.token, err, c.ok)
		}
		if text, _ := os.ReadFile(path); (string(text) == c.text) != c.ok {
			t.Errorf("after token %d the file says %q", c.token, text)
		}
	}
	if err := fence.WriteFile(t.Context(), path, 0, nil, 0o600); !errors.Is(err, fence.ErrBadToken) {
		t.Error(err)
	}
	left, _ := filepath.Glob(path + "*")
	if want := []string{path, path + ".lock", path + ".mark"}; fmt.Sprint(left) != fmt.Sprint(want) {
		t.Errorf("left behind: %v, want %v", left, want)
	}
}

// A reader gets only complete writes, whose tokens never fall.
func TestWriteFileNeverGoesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "register")
	const writers, rounds = 6, 20
	if err := fence.WriteFile(t.Context(), path, 1, content(1), 0o600); err != nil {
		t.Fatal(err)
	}
	var writing, reading sync.WaitGroup
	over := make(chan bool)
	for writer := range writers {
		writing.Go(func() {
			chance := rand.New(rand.NewPCG(uint64(writer), 3))
			for range rounds {
				token := mortise.Token(2 + chance.IntN(1000))
				if err := fence.WriteFile(t.Context(), path, token, content(token), 0o600); err != nil &&
					!errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	reading.Go(func() {
		last := mortise.Token(0)
		for {
			text, err := os.ReadFile(path)
			first, _, _ := strings.Cut(string(text), "\n")
			n, _ := strconv.ParseUint(first, 10, 64)
			token := mortise.Token(n)
			if err != nil || token < last || string(text) != string(content(token)) {
				t.Errorf("after %d the reader sees %.40q, %v", last, text, err)
				return
			}
			last = token
			select {
			case <-over:
				return
			default:
			}
		}
	})
	writing.Wait()
	close(over)
	reading.Wait()
}

func content(token mortise.Token) []byte {
	return []byte(strings.Repeat(fmt.Sprintln(uint64(token)), 3000))
}

// A writer that is stopped inside Do blocks the next writer. The next writer waits until its own
// context ends, and then gets an error that names the lock file.
func TestFilesWaitForTheOther(t *testing.T) {
	files := fence.Files{Dir: t.TempDir()}
	err := files.Do(t.Context(), "a", 5, func(context.Context) error {
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		cancel(enough)
		err := files.Advance(ctx, "a", 6)
		if !errors.Is(err, enough) || !strings.Contains(err.Error(), "another writer has") {
			t.Errorf("while another writes: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// If an unreadable mark counted as zero, it would admit every token.
func TestADamagedMarkIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	for _, text := range []string{"", "mortise fence 1\n", "mortise fence 2\n5\n\"a\"\n",
		"mortise fence 1\n-5\n\"a\"\n", "mortise fence 1\n\n\"a\"\n", "\x00\x00\x00\x00"} {
		if err := os.WriteFile(path+".mark", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := fence.WriteFile(t.Context(), path, 7, []byte("x"), 0o600)
		if err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), ".mark") {
			t.Errorf("mark %q: %v", text, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("mark %q: the file has been written", text)
		}
	}
}

func TestALeftoverIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	for _, name := range []string{path + ".new", path + ".mark.new"} {
		if err := os.WriteFile(name, []byte("half"), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	if err := fence.WriteFile(t.Context(), path, 7, []byte("whole"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(path); string(text) != "whole" {
		t.Errorf("the file says %q", text)
	}
}
