// Package proof is for the tests of what a restart proves. They need certain file systems, and the
// right to mount some. Where these are missing, a test is skipped, except under .ci/run, because a
// proof that is not tested is none.
package proof

import (
	"os"
	"testing"
)

// env is set by .ci/run. Its name does not begin with MORTISE_: programs of the tests inherit it,
// and mortise refuses settings that it does not know.
const env = "PROOFS_MUST_RUN"

// Skip skips a test that cannot show here that a proof is true. Under .ci/run it fails.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(env) != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
