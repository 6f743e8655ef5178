package plugs

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAnswers(t *testing.T) {
	good := func() Answers {
		a := Answers{}
		for _, p := range points() {
			a[p] = None + "the host has no such call"
		}
		return a
	}
	tests := map[string]bool{"TestA": true, "sub.TestB": true}
	for name, c := range map[string]struct {
		change func(a Answers)
		want   string // a part of the only fault; empty means none
	}{
		"reasons":         {func(Answers) {}, ""},
		"tests":           {func(a Answers) { a[Loss] = "TestA sub.TestB" }, ""},
		"a missing point": {func(a Answers) { delete(a, Loss) }, `no answer to "a loss`},
		"an unknown one":  {func(a Answers) { a["noise"] = "TestA" }, `"noise" is no point`},
		"an unknown test": {func(a Answers) { a[Words] = "TestA TestB" }, "names TestB, which is no test"},
		"no test":         {func(a Answers) { a[Words] = " " }, "names no test"},
		"no reason":       {func(a Answers) { a[Words] = None }, "without a reason"},
	} {
		t.Run(name, func(t *testing.T) {
			a := good()
			c.change(a)
			faults := a.faults(tests)
			if c.want == "" && len(faults) > 0 || c.want != "" && (len(faults) != 1 || !strings.Contains(faults[0], c.want)) {
				t.Errorf("%q, want %q", faults, c.want)
			}
		})
	}
}

func TestTestsAreFound(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a_test.go":     "package a\nfunc TestA() {}\nfunc Testing() {}\nfunc (x) TestC() {}\ntype x int\n",
		"a.go":          "package a\nfunc TestD() {}\n",
		"sub/b_test.go": "package b\nfunc TestB() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests, err := testsIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range tests {
		names = append(names, name)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"TestA", "sub.TestB"}) {
		t.Errorf("%q", names)
	}
}

// Each module below adapters answers the list, except two that have no host: mortisepair, which
// pairs two Lockers, and mortisevet, which reads source code.
func TestEachPlugAnswers(t *testing.T) {
	modules, err := filepath.Glob("../../../adapters/*/go.mod")
	if err != nil || len(modules) < 10 {
		t.Fatalf("%d modules: %v", len(modules), err)
	}
	for _, module := range modules {
		if strings.Contains(module, "/mortisepair/") || strings.Contains(module, "/mortisevet/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(filepath.Dir(module), "plugs_test.go"))
		if err != nil || !bytes.Contains(text, []byte(`}.Check(t, ".")`)) {
			t.Errorf("%s has no plugs_test.go that answers the list: %v", filepath.Dir(module), err)
		}
	}
}
