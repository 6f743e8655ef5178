//go:build linux

package proctest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestVersions replaces the present version of the rules by the next version, one instance at a
// time, and reverses that. Until every instance runs the next version, the group uses the version
// that all instances support.
func TestVersions(t *testing.T) {
	for _, how := range []string{byLeave, byKill} {
		t.Run(how, func(t *testing.T) {
			in := always
			if how == byKill {
				in = whole
			}
			begin(t, in)
			if _, err := os.Stat(filepath.Join(os.Getenv(programsEnv), next)); err != nil {
				t.Skipf("*** SKIPPED: there is no next version of the program: %v ***", err)
			}
			w := newWorld(t, settings{replicas: 3})
			fleet := w.startAll(3)
			w.waitReady(slack*readyTime, fleet...)
			exchange := func(i int, program string) {
				w.depart(how, fleet[i])
				fleet[i] = w.startProgram(program, fleet[i].name, fleet[i].machine)
				w.waitReady(slack*readyTime, fleet[i])
			}
			exchange(0, next)
			// The new client is under load at an old leader. It loses no lock and no session.
			held := fleet[0].life
			if _, err := fleet[0].ask("lock", "held/"+held, slack*readyTime); err != nil {
				t.Fatal(err)
			}
			sessions := fleet[0].status().Sessions
			time.Sleep(2 * defaultTTL)
			if _, err := fleet[0].ask("check", "held/"+held, time.Second); err != nil ||
				!slices.Equal(fleet[0].status().Sessions, sessions) {
				t.Errorf("the new client at an old leader: %v", err)
			}
			if marks, refused := w.later(fleet[0]); marks > 0 || refused == 0 {
				t.Errorf("before the Raise: %d marks, %d refused", marks, refused)
			}
			if _, err := fleet[0].ask("unlock", "held/"+held, slack*readyTime); err != nil {
				t.Errorf("unlock: %v", err)
			}
			exchange(1, next)
			exchange(0, present) // reverses the deploy
			exchange(1, present)
			for i := range fleet { // deploys the next version on all instances
				exchange(i, next)
			}
			for deadline := time.Now().Add(slack * readyTime); ; time.Sleep(time.Second / 4) {
				marks, _ := w.later(fleet[0])
				if marks > 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the new kind does not work after the Raise")
				}
			}
			// Back to the old build: the first instance is refused, and the group goes on.
			name, m := fleet[0].name, fleet[0].machine
			w.depart(how, fleet[0])
			old := w.startProgram(present, name, m)
			const text = "the group has lock rules 2, this build knows up to 1: it gets no session, and could not vote"
			_, err := old.ask("ready", "", slack*readyTime/2)
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("the old build: Ready: %v", err)
			}
			w.depart(byKill, old)
			fleet[0] = w.startProgram(next, name, m)
			w.waitReady(slack*readyTime, fleet[0])
			w.verdict(slack * readyTime)
		})
	}
}

// later returns how many commands of the next version an instance has sent with and without
// success.
func (w *world) later(in *instance) (marks, refused uint64) {
	w.t.Helper()
	e, err := in.ask("later", "", 5*time.Second)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := fmt.Sscanf(e.Text, "%d marks, %d refused", &marks, &refused); err != nil {
		w.t.Fatalf("%q: %v", e.Text, err)
	}
	return marks, refused
}
