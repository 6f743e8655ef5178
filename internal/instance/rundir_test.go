package instance

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/proof"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
	"github.com/mortise-lock/mortise/session"
)

// process opens the run directory for a process. It skips the test where nothing is proved.
func process(t *testing.T, path string) *runDir {
	t.Helper()
	r, err := openRunDir(&Config{RunDir: path, Logger: slog.New(slog.DiscardHandler)}, storage.OSFS())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.dir.Close() })
	return r
}

// TestWhoseEndAProcessClaims runs processes one after the other. Each claims the end of the last
// incarnation of an earlier process that has joined a group, also after a restart in place, and
// never that of an incarnation of its own.
func TestWhoseEndAProcessClaims(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	joins := func(r *runDir, key uint64, group uint64, former nodeid.ID) {
		t.Helper()
		k := nodeidtest.Key(key)
		claim := r.joins(group, &k)
		if session.NamedFormer(claim) != former || former.IsZero() != (claim == nil) ||
			claim != nil && !session.ProvenFormer(claim, group, k.ID()) {
			t.Errorf("instance %d claims %v, want %v", key, session.NamedFormer(claim), former)
		}
	}
	first := process(t, path)
	joins(first, 1, 7, nodeid.ID{})
	_ = first.dir.Close()

	second := process(t, path)
	if !second.dir.Proves() {
		proof.Skip(t, "nothing is proved on this file system")
	}
	one := nodeidtest.Key(1).ID()
	joins(second, 2, 7, one)
	joins(second, 2, 7, one)
	joins(second, 3, 8, one) // it has restarted in place, and is in another group
	_ = second.dir.Close()

	third := process(t, path) // it ends before it has joined a group
	_ = third.dir.Close()
	joins(process(t, path), 5, 8, nodeidtest.Key(3).ID())
}

// TestARestartInPlaceKeepsTheFormer checks the key in the run directory after a restart in place of
// a whole instance: that of the incarnation that has joined last.
func TestARestartInPlaceKeepsTheFormer(t *testing.T) {
	r, path := newRig(t), filepath.Join(t.TempDir(), "run")
	r.withRunDirAt(path)
	life{r.n}.Member(rigGroup, places())
	life{r.n}.Restart(nodeidtest.Key(3), errors.New("why"))
	life{r.n}.Member(rigGroup, places())
	if got := r.n.begins.run.former.ID(); got != nodeidtest.Key(4).ID() {
		t.Errorf("after the restart in place it claims %v", got)
	}
	if err := r.n.closeDir(); err != nil {
		t.Fatal(err)
	}
	claims(t, process(t, path), 3)
	r.end()
}

// TestARunDirInUse checks the error of a second process.
func TestARunDirInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	process(t, path)
	var log bytes.Buffer
	_, err := openRunDir(&Config{RunDir: path, Logger: slog.New(slog.NewTextHandler(&log, nil))}, storage.OSFS())
	if !errors.Is(err, storage.ErrInUse) || !strings.HasPrefix(err.Error(), "Config.RunDir: ") ||
		!strings.Contains(err.Error(), "a directory of its own") {
		t.Errorf("a second process: %v", err)
	}
}

// hungFiles are files of which none can be created until free is closed.
type hungFiles struct {
	storage.FS
	free chan struct{}
}

func (f hungFiles) Create(path string) (storage.File, error) {
	<-f.free
	return f.FS.Create(path)
}

// TestARunDirThatHangsHoldsNothingUp checks that the owner of the cluster goes on while the disk of
// the run directory does not answer, and that Close reports it.
func TestARunDirThatHangsHoldsNothingUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	synctest.Test(t, func(t *testing.T) {
		files := hungFiles{storage.OSFS(), make(chan struct{})}
		r := newRig(t)
		r.withRunDirOf(path, files)
		life{r.n}.Member(rigGroup, places())
		life{r.n}.Restart(nodeidtest.Key(3), errors.New("why"))
		life{r.n}.Member(rigGroup, places())
		began := time.Now()
		if err := r.n.closeDir(); !errors.Is(err, raftlog.ErrHung) || time.Since(began) > time.Minute {
			t.Errorf("after %v it is closed: %v", time.Since(began), err)
		}
		close(files.free)
		if err := r.n.closeDir(); err != nil {
			t.Error(err)
		}
		r.end()
	})
	claims(t, process(t, path), 3)
}

// claims checks whose end a process claims. It skips the test where nothing is proved.
func claims(t *testing.T, r *runDir, key uint64) {
	t.Helper()
	if !r.dir.Proves() {
		proof.Skip(t, "nothing is proved on this file system")
	}
	if former := r.former.ID(); former != nodeidtest.Key(key).ID() {
		t.Errorf("the process claims %v", former)
	}
}
