package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// putBack writes the files of a copy over those of a directory, like a restore that keeps the
// files and replaces their content.
func putBack(t *testing.T, dir, from string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(dir, rel), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestADirectoryPutBack puts the directory of a follower back in an earlier state, in place, so
// that the inode numbers of its files do not change. The instance has forgotten entries that it has
// acknowledged, and perhaps a vote. It must not take part, not at its next start either, and say
// what to do.
//
// The copy was made before or after the last start. The leader in office knows what the follower
// has stored, and every voter knows the last start. So only one case is not detected: the copy is
// from the time after the last start, and another leader has been elected since.
func TestADirectoryPutBack(t *testing.T) {
	slow.UnderRace(t)
	for _, c := range []struct {
		name     string
		started  bool // the instance was started between the copy and its loss
		newLeads bool // another instance leads since
		want     string
	}{
		{"the leader knows the log", false, false, "was stored, and the log ends at entry"},
		{"the leader and the voters know more", true, false, "was restored from an older copy"},
		{"the voters know the start", true, true, "another process has made the same start"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				root := t.TempDir()
				f := durableFleet(t, root)
				victim := f.follower()
				config := durableConfig(f, root, victim, victim)
				if c.started {
					f.crash(victim)
				}
				from := filepath.Join(t.TempDir(), "copy")
				if err := os.CopyFS(from, os.DirFS(config.Dir)); err != nil {
					t.Fatal(err)
				}
				if c.started {
					f.redeploy(config, victim)
				}
				for range 30 {
					unlock(t, f.lock((victim+1)%3, "k"))
				}
				time.Sleep(time.Second)
				f.crash(victim)
				putBack(t, config.Dir, from)
				if c.newLeads {
					l := f.leader()
					f.crash(l)
					f.start(l, durableConfig(f, root, l, l))
					time.Sleep(time.Second)
				}
				n := f.start(victim, config)
				began := time.Now()
				for n.Err() == nil && time.Since(began) < 20*time.Second {
					time.Sleep(100 * time.Millisecond)
				}
				t.Logf("after %v: %v", time.Since(began), n.Err())
				for _, want := range []string{c.want, config.Dir, "empty the directory"} {
					if err := n.Err(); err == nil || !strings.Contains(err.Error(), want) {
						t.Fatalf("Err is %v, want %q\n%v", err, want, n.Status())
					}
				}
				if err := n.Ready(t.Context()); err == nil || n.Status().Votes {
					t.Errorf("it takes part: %v\n%v", err, n.Status())
				}
				f.close(victim)
				if again, err := start(t.Context(), config, f.world(victim)); err == nil {
					f.nodes[victim] = again
					t.Error("the directory is used again")
				} else if !strings.Contains(err.Error(), "restored from an older copy") {
					t.Errorf("the next start fails with %v", err)
				}
				if err := os.RemoveAll(config.Dir); err != nil { // the step that the error names
					t.Fatal(err)
				}
				f.redeploy(config, victim)
				f.wantVotes(3)
			})
		})
	}
}
