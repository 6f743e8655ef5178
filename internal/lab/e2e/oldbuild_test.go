package e2e

import (
	"bytes"
	"context"
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/lockfsm"
)

// TestAnOldBuildIsRefused starts an instance whose build does not know the lock rules of the group.
// It never becomes a learner or Ready, so a roll-out stops. Its Status, Ready's error and its log,
// and the leader's log, name the cause and the next step. The step is carried out.
//
// Only the build with the next rules has older ones, so the present build runs the test in that
// one.
func TestAnOldBuildIsRefused(t *testing.T) {
	slow.UnderRace(t)
	if lockfsm.RulesVersion == 1 {
		ofTheNextBuild(t)
		return
	}
	for name, dir := range map[string]bool{"in memory": false, "with Dir": true} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			bubble(t, func(t *testing.T) {
				logs, into := logged(slog.LevelInfo)
				old := false
				f := newFleet(t)
				f.alter = func(e *outside.World) {
					if old {
						e.Rules = lockfsm.RulesVersion - 1
					}
				}
				begin := func(i int) {
					c := f.config(i, 3)
					into(&c)
					if dir {
						withSecret(secretA)(&c)
						inDir(root)(&c)
					}
					f.start(i, c)
				}
				for i := range 3 {
					begin(i)
				}
				f.ready()
				i := f.follower()
				f.crash(i)
				time.Sleep(2 * time.Minute) // the group goes on without it
				old = true
				if dir { // a build with older rules could not read the directory, and has a new one
					root = t.TempDir()
				}
				for _, l := range logs {
					l.take()
				}
				begin(i)
				node := f.nodes[i]
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
				defer cancel()
				err := node.Ready(ctx)
				const text = "the group has lock rules 2, this build knows up to 1: it gets no session, and could not vote; " +
					"upgrade it to the build of the others, or take the roll-out of this build back"
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("Ready: %v", err)
				}
				if s := node.Status(); s.Waiting != text || s.Votes {
					t.Errorf("Status: %v", s)
				}
				leader := f.nodes[f.leader()]
				for _, v := range leader.Status().Voters {
					if v.Name == node.config.Name && v.Instance == node.Status().Instance {
						t.Errorf("it became a replica: %+v", v)
					}
				}
				if got := strings.Join(logs[node.config.Name].take(), ""); strings.Count(got, "level=ERROR") != 1 ||
					!strings.Contains(got, text) {
					t.Errorf("its log:\n%s", got)
				}
				got := strings.Join(logs[leader.config.Name].take(), "")
				if n := strings.Count(got, "an instance gets no session"); n < 1 || n > 4 ||
					!strings.Contains(got, "name="+node.config.Name) || !strings.Contains(got, "its_build_knows_up_to=1") {
					t.Errorf("the leader's log:\n%s", got)
				}
				const step = "upgrade it to the build of the others, or take the roll-out of this build back"
				if h, err := leader.Health(t.Context()); err != nil || len(h.Differs) != 1 || h.Advice != step ||
					!strings.HasPrefix(h.Differs[0], "Build: "+node.config.Name+" at ") || !strings.HasSuffix(h.Differs[0], text) {
					t.Errorf("Health: %v, %v", h, err)
				}
				unlock(t, f.lock(f.leader(), "k"))
				old = false // the step: upgrade it
				f.close(i)
				begin(i)
				f.ready()
				if text := f.nodes[i].Status().Waiting; text != "" {
					t.Errorf("after the upgrade: %q", text)
				}
				time.Sleep(2 * time.Minute)
				if h, err := leader.Health(t.Context()); err != nil || len(h.Differs) != 0 || h.Advice == step {
					t.Errorf("Health after the upgrade: %v, %v", h, err)
				}
			})
		})
	}
}

// ofTheNextBuild runs the test t in the build with the next rules.
func ofTheNextBuild(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil || testing.Short() {
		t.Skip("it builds this package anew")
	}
	out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-tags=nextrules", "-run=^"+t.Name()+"$",
		".").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("ok")) {
		t.Errorf("%v\n%s", err, out)
	}
}
