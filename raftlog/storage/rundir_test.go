package storage

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/internal/lab/proof"
	"github.com/mortise-lock/mortise/raftlog"
)

var aSeed, nextSeed = bytes.Repeat([]byte{7}, ed25519.SeedSize), bytes.Repeat([]byte{9}, ed25519.SeedSize)

// runAt opens the run directory, and returns it and what it has logged.
func runAt(t *testing.T, path string) (*RunDir, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	d, err := OpenRun(path, nil, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, &log
}

// leaves opens the run directory at a path, keeps seeds in it and closes it. It returns the path of
// the file. It skips the test where nothing is proved.
func leaves(t *testing.T, path string, seeds ...[]byte) string {
	t.Helper()
	d, _ := runAt(t, path)
	if !d.Proves() {
		proof.Skip(t, "nothing is proved on the file system of %s", path)
	}
	for _, seed := range seeds {
		d.Keep(seed)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(path, formerName)
}

// TestARunDirNamesTheLastIncarnation checks that an incarnation finds the last one that was kept,
// and that one that keeps nothing leaves it to the next.
func TestARunDirNamesTheLastIncarnation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	leaves(t, path)
	for range 2 {
		d, log := runAt(t, path)
		if d.Former() != nil || log.Len() > 0 {
			t.Errorf("the first one finds %x: %s", d.Former(), log)
		}
		_ = d.Close()
	}
	file := leaves(t, path, aSeed, nextSeed, nextSeed)
	for range 2 {
		d, log := runAt(t, path)
		if !bytes.Equal(d.Former(), nextSeed) || log.Len() > 0 {
			t.Errorf("the next one finds %x: %s", d.Former(), log)
		}
		_ = d.Close()
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != filePerm {
		t.Errorf("the file with the key: %v, %v", info.Mode(), err)
	}
	if all, err := os.ReadDir(path); err != nil || len(all) != 2 {
		t.Errorf("the directory contains %v, %v", all, err)
	}
}

// TestARunDirIsOfOneProcess checks that a second process is told what to do.
func TestARunDirIsOfOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	d, _ := runAt(t, path)
	for range 2 {
		_, err := OpenRun(path, nil, nil)
		if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "a directory of its own") {
			t.Errorf("a second one: %v", err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	runAt(t, path)
	_, err := OpenRun(filepath.Join(path, "a", "b"), nil, nil)
	if err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("without its parent: %v", err)
	}
}

// TestADamagedKeyClaimsNothing cuts the file off after each byte, lengthens it, and changes each
// bit. Nothing is claimed then, a warning is written, and the next key is kept.
func TestADamagedKeyClaimsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	file := leaves(t, path, aSeed)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damaged := [][]byte{append(bytes.Clone(whole), 0), bytes.Repeat(whole, 20), []byte("a file of another program")}
	for i := range whole {
		damaged = append(damaged, whole[:i])
		for bit := range 8 {
			flipped := bytes.Clone(whole)
			flipped[i] ^= 1 << bit
			damaged = append(damaged, flipped)
		}
	}
	for _, text := range damaged {
		if err := os.WriteFile(file, text, filePerm); err != nil {
			t.Fatal(err)
		}
		d, log := runAt(t, path)
		if d.Former() != nil || !strings.Contains(log.String(), "cannot be read") {
			t.Fatalf("%q claims %x: %s", text, d.Former(), log)
		}
		_ = d.Close()
	}
	leaves(t, path, aSeed)
	if d, _ := runAt(t, path); !bytes.Equal(d.Former(), aSeed) {
		t.Errorf("after the damage it finds %x", d.Former())
	}
}

func TestARunDirAtItsBound(t *testing.T) {
	limits.AtMost(t, "maxFormer", maxFormer, func(n int) bool {
		site, seed, err := decodeFormer(encodeFormer(strings.Repeat("s", n-len(encodeFormer("", aSeed))), aSeed))
		return err == nil && len(site) > 0 && bytes.Equal(seed, aSeed)
	})
}

// TestAKeyOfAnotherSiteClaimsNothing copies the file to another directory, and replaces the lock
// file while it is held and afterwards.
func TestAKeyOfAnotherSiteClaimsNothing(t *testing.T) {
	path, other := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "run")
	file := leaves(t, path, aSeed)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(leaves(t, other, nextSeed), text, filePerm); err != nil {
		t.Fatal(err)
	}
	if d, log := runAt(t, other); d.Former() != nil || log.Len() > 0 {
		t.Errorf("of a copy it claims %x: %s", d.Former(), log)
	}
	first, _ := runAt(t, path)
	if err := os.Remove(filepath.Join(path, lockName)); err != nil {
		t.Fatal(err)
	}
	second, _ := runAt(t, path)
	if second.Former() != nil {
		t.Errorf("beside a process that runs it claims %x", second.Former())
	}
	second.Keep(nextSeed)
	<-second.stored
	first.Keep(bytes.Repeat([]byte{8}, ed25519.SeedSize))
	<-first.stored
	_ = second.Close()
	if third, _ := runAt(t, path); third.Former() != nil {
		t.Errorf("the process that runs beside it is claimed: %x", third.Former())
	}
}

// TestAKeyThatIsNoFile checks that no link is followed, and that a key that cannot be stored is
// reported.
func TestAKeyThatIsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	file := leaves(t, path, aSeed)
	moved := filepath.Join(t.TempDir(), "moved")
	if err := errors.Join(os.Rename(file, moved), os.Symlink(moved, file)); err != nil {
		t.Fatal(err)
	}
	d, log := runAt(t, path)
	if d.Former() != nil || !strings.Contains(log.String(), "no regular file") {
		t.Errorf("through a link it claims %x: %s", d.Former(), log)
	}
	if err := os.MkdirAll(filepath.Join(file+".tmp", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	d.Keep(nextSeed)
	if <-d.stored; !strings.Contains(log.String(), "cannot be stored") {
		t.Errorf("logged: %s", log)
	}
	if err := os.RemoveAll(file + ".tmp"); err != nil {
		t.Fatal(err)
	}
	d.Keep(nextSeed)
	_ = d.Close()
	if d, _ := runAt(t, path); !bytes.Equal(d.Former(), nextSeed) {
		t.Errorf("it finds %x", d.Former())
	}
}

// hungCreate are files of which none can be created until free is closed.
type hungCreate struct {
	FS
	free chan struct{}
}

func (f hungCreate) Create(path string) (File, error) {
	<-f.free
	return f.FS.Create(path)
}

// TestNothingWaitsForTheDiskOfARunDir stores keys on a disk that hangs. Keep returns at once, Close
// after its limit, and the directory stays locked until the writes have ended, in their order.
func TestNothingWaitsForTheDiskOfARunDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	leaves(t, path, bytes.Repeat([]byte{8}, ed25519.SeedSize))
	synctest.Test(t, func(t *testing.T) {
		files := hungCreate{OSFS(), make(chan struct{})}
		d, err := OpenRun(path, files, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		d.Keep(aSeed)
		d.Keep(nextSeed)
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
		for range 2 {
			refused(t, d.Close(), raftlog.ErrHung, path)
		}
		if took := time.Since(began); took != 2*maxCloseWait {
			t.Errorf("Close took %v", took)
		}
		_, err = OpenRun(path, nil, nil)
		refused(t, err, ErrInUse)
		close(files.free)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if d, _ := runAt(t, path); !bytes.Equal(d.Former(), nextSeed) {
		t.Errorf("the next one finds %x", d.Former())
	}
}
