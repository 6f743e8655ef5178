package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	root     = "../.."
	maxLines = 88 // users copy longer files without reading them
)

// checks maps each file in deploy to the function that checks it.
var checks = map[string]func(string, Program) []error{
	"kubernetes-statefulset.yaml": StatefulSet,
	"kubernetes-deployment.yaml":  Deployment,
	"compose.yaml":                Compose,
	"orders.service":              Unit,
}

func read(t *testing.T, name string) string {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(file)
}

func program(t *testing.T) Program {
	t.Helper()
	p, err := ReadProgram(root)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFilesAreRight(t *testing.T) {
	p := program(t)
	for name, check := range checks {
		file := read(t, name)
		for _, err := range check(file, p) {
			t.Errorf("deploy/%s: %v", name, err)
		}
		if lines := strings.Count(file, "\n"); lines > maxLines {
			t.Errorf("deploy/%s has %d lines, more than %d", name, lines, maxLines)
		}
		if comments := strings.Count(file, "# "); comments < 8 {
			t.Errorf("deploy/%s has %d comments: say why it is as it is", name, comments)
		}
	}
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() && checks[e.Name()] == nil && e.Name() != "kustomization.yaml" {
			t.Errorf("nothing checks deploy/%s", e.Name())
		}
	}
}

// TestSystemdAgrees checks the unit with systemd-analyze if that is installed. The unit gets the
// path of this test program, because its own program is not installed here.
func TestSystemdAgrees(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here: the unit is held to this package's own table only")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "orders.service")
	if err := os.WriteFile(unit, []byte(strings.Replace(read(t, "orders.service"), "/usr/local/bin/orders", self, 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
