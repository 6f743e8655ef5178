package storage

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/raftlog"
)

func TestLookNoticesALostDirectory(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, path string){
		"removed": func(t *testing.T, path string) { wantNil(t, os.RemoveAll(path)) },
		"moved":   func(t *testing.T, path string) { wantNil(t, os.Rename(path, path+".old")) },
		"replaced": func(t *testing.T, path string) {
			wantNil(t, os.Rename(path, path+".old"))
			wantNil(t, os.CopyFS(path, os.DirFS(path+".old")))
		},
		"made anew": func(t *testing.T, path string) {
			wantNil(t, os.RemoveAll(path))
			wantNil(t, os.Mkdir(path, dirPerm))
			wantNil(t, os.WriteFile(filepath.Join(path, lockName), nil, filePerm))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "d")
			d, err := Open(Config{Path: path})
			wantNil(t, err)
			defer d.Close()
			view, err := d.Look(time.Minute, true)
			wantNil(t, err)
			if view.FreeKnown && view.FreeBytes == 0 {
				t.Error("there is no room left")
			}
			lose(t, path)
			_, err = d.Look(time.Minute, true)
			wantIs(t, err, ErrLost)
		})
	}
}

func TestLooksFollowEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	d, err := Open(Config{Path: path})
	wantNil(t, err)
	defer d.Close()
	for range 1000 {
		_, err := d.Look(time.Minute, false)
		wantNil(t, err)
	}
	_, err = d.Look(time.Minute, true)
	wantNil(t, err)
	wantNil(t, os.Remove(filepath.Join(path, probeName)))
	wantNil(t, os.Mkdir(filepath.Join(path, probeName), dirPerm))
	_, err = d.Look(time.Minute, true)
	wantIs(t, err, raftlog.ErrStorage)
	_, err = d.Log(1, 2)
	wantNil(t, err) // an error of Look is not final for the log
}

type silentFS struct {
	FS
	let chan struct{}
}

func (f silentFS) Free(dir string) (uint64, bool) {
	<-f.let
	return f.FS.Free(dir)
}

// Look has at most one pending system call, and succeeds again when that call has returned.
func TestLookDoesNotWaitForAHungDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := silentFS{OSFS(), make(chan struct{})}
		d, err := Open(Config{Path: filepath.Join(t.TempDir(), "d"), Files: files})
		wantNil(t, err)
		defer d.Close()
		for i := range 2 {
			began := time.Now()
			_, err = d.Look(time.Second, false)
			wantIs(t, err, raftlog.ErrHung)
			if took, most := time.Since(began), time.Second*time.Duration(1-i); took > most {
				t.Errorf("look %d took %v, more than %v", i, took, most)
			}
		}
		close(files.let)
		synctest.Wait()
		_, err = d.Look(time.Second, false)
		wantNil(t, err)
	})
}

func wantNil(t *testing.T, err error) {
	t.Helper()
	wantIs(t, err, nil)
}

func wantIs(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
}
