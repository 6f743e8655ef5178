package proof

import (
	"os"
	"strings"
	"testing"
)

// told is a test that notes how it ends.
type told struct {
	testing.TB
	skips, fails int
}

func (t *told) Helper()               {}
func (t *told) Fatalf(string, ...any) { t.fails++ }
func (t *told) Skipf(string, ...any)  { t.skips++ }

// TestASkipFailsUnderCI checks that no proof stays without a test under .ci/run.
func TestASkipFailsUnderCI(t *testing.T) {
	for set, want := range map[string]told{"": {skips: 1}, "1": {skips: 1, fails: 1}} {
		t.Setenv(env, set)
		got := &told{}
		Skip(got, "no %s here", "mount")
		if got.fails != want.fails || got.fails == 0 && got.skips != want.skips {
			t.Errorf("%s=%q: %d fail, %d are skipped", env, set, got.fails, got.skips)
		}
	}
}

// TestCIExportsNoSetting checks that .ci/run sets the variable, and none that mortise would take
// for a setting of its own.
func TestCIExportsNoSetting(t *testing.T) {
	script, err := os.ReadFile("../../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(script), "\nexport "+env+"=1") || strings.Contains(string(script), "MORTISE_") {
		t.Errorf(".ci/run does not export %s, or it names a setting of mortise:\n%s", env, script)
	}
}
