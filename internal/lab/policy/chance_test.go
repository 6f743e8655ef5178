package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A merge gives a test that has failed a second chance. These are the outputs of go test for which
// it does, and for which it must not.
func TestASecondChance(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("test.sh needs bash")
	}
	text, err := os.ReadFile(filepath.Join(root, "test.sh"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\ntests() {")
	functions, _, ends := strings.Cut(rest, "\n# nested ")
	if !found || !ends {
		t.Fatal("test.sh has no functions tests and failures")
	}
	const (
		bad   = `--- FAIL: TestA (0.01s)\n    a_test.go:1: no\nFAIL\nFAIL\tm/a\t0.1s\nok  \tm/b\t0.1s\nFAIL\n`
		good  = `ok  \tm/a\t0.1s\n`
		named = "TestA of m/a\n"
	)
	for name, c := range map[string]struct {
		long          string
		first, second string // what go test prints; it fails if that contains FAIL
		passes        bool
		flaky         string
	}{
		"all pass":          {first: good, passes: true},
		"passes when alone": {first: bad, second: good, passes: true, flaky: named},
		"fails again":       {first: bad, second: bad},
		"two of one package": {first: `--- FAIL: TestB (0.01s)\n` + bad, second: good, passes: true,
			flaky: named + "TestB of m/a\n"},
		"of a later package": {first: `ok  \tm/c\t1s\n--- FAIL: TestA (0s)\nFAIL\tm/a\t0.1s\n`, second: good, passes: true,
			flaky: named},
		"every night":           {long: "yes", first: bad, second: good},
		"a data race":           {first: `WARNING: DATA RACE\n` + bad, second: good},
		"a panic":               {first: `panic: runtime error\n` + bad, second: good},
		"a judge objects":       {first: `    b.go:1: history: overlap: two have it\n` + bad, second: good},
		"whole nodes object":    {first: `    b.go:1: 2 bugs, the first: it has it\n` + bad, second: good},
		"does not compile":      {first: `FAIL\tm/a [build failed]\n`, second: good},
		"a process is left":     {first: bad + `FAIL\tm/c\t0.1s\n`, second: good},
		"no test has this name": {first: bad, second: `testing: warning: no tests to run\n` + good},
	} {
		script := `set -euo pipefail; work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; long=${LONG:+true}; long=${long:-false}
			go() {
				[ "$1 $2 $3" = "test -short -count=1" ] || return 3
				local text=$FIRST
				if [ -e "$work/again" ]; then text=$SECOND; fi
				touch "$work/again"
				printf -- "$text"; [ "${text/FAIL/}" = "$text" ]
			}
			tests() {` + functions + `
			code=0; tests -short -count=1 -- m/a m/b m/c >/dev/null || code=$?
			if [ -e "$work/flaky" ]; then cat "$work/flaky"; fi
			exit "$code"`
		command := exec.CommandContext(t.Context(), "bash", "-c", script)
		command.Env = append(os.Environ(), "FIRST="+c.first, "SECOND="+c.second, "LONG="+c.long)
		out, err := command.Output()
		if (err == nil) != c.passes || c.passes && string(out) != c.flaky {
			t.Errorf("%s: the step ends with %v and names %q as flaky", name, err, out)
		}
	}
}
