package policy

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func vulncheck(t *testing.T, env ...string) (code int, output string) {
	t.Helper()
	cmd := exec.Command("bash", filepath.Join(root, "scripts/vulncheck"))
	cmd.Env = append(os.Environ(), env...)
	text, err := cmd.CombinedOutput()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// scanner writes a program that replaces govulncheck. Each time it runs, the program appends the
// scanned module to the file whose path is returned as seen, and then runs the given script.
func scanner(t *testing.T, script string) (program, seen string) {
	t.Helper()
	program, seen = filepath.Join(t.TempDir(), "scanner"), filepath.Join(t.TempDir(), "seen")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$4\" >>"+seen+"\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return program, seen
}

func database(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "index"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "index", "db.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "MORTISE_VULNDB=file://" + dir
}

// The script may skip the search only if it cannot fetch something, and a skip must not hide a
// finding.
func TestVulnerabilitiesFailTheBuild(t *testing.T) {
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	adapters, err := filepath.Glob(filepath.Join(root, "adapters", "*", "go.mod"))
	if err != nil || len(adapters) == 0 {
		t.Fatal("there are no adapters", err)
	}
	modules := ".\n"
	for _, at := range adapters {
		modules += "adapters/" + filepath.Base(filepath.Dir(at)) + "\n"
	}
	const skipped = "*** SKIPPED: the search for known vulnerabilities"
	for what, c := range map[string]struct {
		script string
		code   int
		says   string
	}{
		"none":                     {"exit 0", 0, ""},
		"found":                    {"exit 3", 1, "module . reaches vulnerabilities"},
		"found in one module only": {`[ "$4" = . ] || exit 0; exit 3`, 1, "module . reaches vulnerabilities"},
		"found in the last module": {`[ "$4" = adapters/mortiseotel ] || exit 0; exit 3`, 1,
			"module adapters/mortiseotel reaches vulnerabilities"},
		"a scan that fails":     {"exit 1", 1, "failed (exit code 1)"},
		"a scan that is killed": {"kill -9 $$", 1, "failed (exit code 137)"},
	} {
		program, seen := scanner(t, c.script)
		code, output := vulncheck(t, database(t), "MORTISE_GOVULNCHECK="+program)
		if code != c.code || !strings.Contains(output, c.says) || strings.Contains(output, skipped) {
			t.Errorf("%s: exit code %d, want %d, and it printed:\n%s", what, code, c.code, output)
		}
		if scanned, _ := os.ReadFile(seen); string(scanned) != modules {
			t.Errorf("%s: modules that were scanned: %q, want %q", what, scanned, modules)
		}
	}

	// Here the search is skipped before any module is scanned.
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	program, seen := scanner(t, "exit 0")
	for what, env := range map[string][]string{
		"no database": {"MORTISE_VULNDB=file:///nonexistent", "MORTISE_GOVULNCHECK=" + program},
		"a database that is silent": {"MORTISE_VULNDB=http://" + silent.Addr().String(), "MORTISE_VULNDB_PATIENCE=1",
			"MORTISE_GOVULNCHECK=" + program},
		"no module": {database(t), "GOPROXY=off", "GOMODCACHE=" + t.TempDir()},
	} {
		began := time.Now()
		code, output := vulncheck(t, env...)
		if code != 0 || !strings.Contains(output, skipped) {
			t.Errorf("%s: exit code %d, and it printed:\n%s", what, code, output)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: it took %v to skip", what, took)
		}
	}
	if _, err := os.Stat(seen); err == nil {
		t.Error("something was scanned without a database")
	}
}
