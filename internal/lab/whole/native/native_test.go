package native

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/mutants"
)

// TestOverlayFits checks that all anchors occur in Go's sources and in those of the product.
func TestOverlayFits(t *testing.T) {
	if !strings.HasPrefix(runtime.Version(), Go) {
		t.Skipf("the replay is written for %s", Go)
	}
	goroot, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, planted := range []bool{false, true} {
		if _, err := Overlay("../../../..", goroot, t.TempDir(), planted); err != nil {
			t.Error(err)
		}
	}
}

// TestOtherVersionsAreRefused checks that another Go version is an error that names both.
func TestOtherVersionsAreRefused(t *testing.T) {
	for _, version := range []string{"go1.25.4", "go1.27", "go1.260", "devel go1.27-abcdef"} {
		_, err := Runtime(t.TempDir(), version)
		if err == nil || !strings.Contains(err.Error(), Go+",") || !strings.Contains(err.Error(), version+":") {
			t.Errorf("%s: the error %v does not name both versions", version, err)
		}
	}
}

// TestAnchorsAreAsserted checks that a changed source of Go is an error that names the file.
func TestAnchorsAreAsserted(t *testing.T) {
	files := append(edits[:], edit{file: "sync/atomic/type.go"})
	root := t.TempDir()
	for _, e := range files {
		path := filepath.Join(root, "src", e.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("package changed\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Runtime(root, Go+".1")
	if err == nil {
		t.Fatal("a changed runtime passes")
	}
	for _, e := range files {
		if !strings.Contains(err.Error(), e.file) {
			t.Errorf("the error does not name %s: %v", e.file, err)
		}
	}
}

// TestBugsAreListed checks that each bug of the list is planted, and each one of bugs.diff listed.
func TestBugsAreListed(t *testing.T) {
	ours, err := editsOf("bugs.diff")
	if err != nil {
		t.Fatal(err)
	}
	all, err := mutants.Edits()
	if err != nil {
		t.Fatal(err)
	}
	planted, listed := map[string]bool{}, map[string]bool{}
	for _, e := range append(all, ours...) {
		for _, name := range e.Bugs() {
			planted[name] = true
		}
	}
	for _, b := range Bugs() {
		listed[b.Name] = true
		if !planted[b.Name] || b.Breaks == "" {
			t.Errorf("%s is not planted, or does not say what it breaks", b.Name)
		}
	}
	for _, e := range ours {
		for _, name := range e.Bugs() {
			if !listed[name] {
				t.Errorf("%s is not listed", name)
			}
		}
	}
}
