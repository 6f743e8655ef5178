//go:build linux

package proctest

import (
	"os"
	"path/filepath"
	"testing"
)

// TestVersions replaces the present version of the rules by the next version, one instance at a
// time, and reverses that. Until every instance runs the next version, the group uses the version
// that all instances support.
func TestVersions(t *testing.T) {
	begin(t, always)
	if _, err := os.Stat(filepath.Join(os.Getenv(programsEnv), next)); err != nil {
		t.Skipf("*** SKIPPED: there is no next version of the program: %v ***", err)
	}
	for _, how := range []string{byLeave, byKill} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t, settings{replicas: 3})
			fleet := w.startAll(3)
			w.waitReady(slack*readyTime, fleet...)
			exchange := func(i int, program string) {
				w.depart(how, fleet[i])
				fleet[i] = w.startProgram(program, fleet[i].name, fleet[i].machine)
				w.waitReady(slack*readyTime, fleet[i])
			}
			exchange(0, next)
			exchange(1, next)
			exchange(0, present) // reverses the deploy
			exchange(1, present)
			for i := range fleet { // deploys the next version on all instances
				exchange(i, next)
			}
			w.verdict(slack * readyTime)
		})
	}
}
