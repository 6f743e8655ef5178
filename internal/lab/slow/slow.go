// Package slow lets a test say at which runs it is left out. The call of UnderRace or Nightly is
// the first statement of the test, so that test.sh can list the tests that say so, print what it
// leaves out, and run the rest.
//
// At a merge ./test.sh passes -short to go test; ./test.sh -long, which CI runs every night, does
// not. A test that only runs more seeds every night uses Sized, or asks testing.Short itself.
package slow

import (
	"hash/fnv"
	"testing"
)

// UnderRace skips a test under the race detector at a merge. The race detector makes a test of
// whole nodes about ten times slower, and other tests run the same code with it. At a merge the
// test runs without the race detector.
func UnderRace(t testing.TB) {
	t.Helper()
	if Race && testing.Short() {
		t.Skip("with the race detector it runs only every night")
	}
}

// Eighth skips seven of eight tests under the race detector at a merge, chosen by their names. It
// is for the helper with which the tests of a package begin, if they run the same code again and
// again (internal/lab/e2e). At a merge test.sh runs that package also without the race detector.
func Eighth(t testing.TB) {
	t.Helper()
	name := fnv.New32a()
	name.Write([]byte(t.Name()))
	if Race && testing.Short() && name.Sum32()%8 != 0 {
		t.Skip("with the race detector it runs only every night, as seven of eight tests of its package")
	}
}

// Nightly skips a test at a merge. It must not be the only test that catches a planted bug.
func Nightly(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs only every night")
	}
}

// Sized returns the size of a test that is smaller at a merge than at night, for example how many
// members of a class it tries.
func Sized[T any](merge, night T) T {
	if testing.Short() {
		return merge
	}
	return night
}
