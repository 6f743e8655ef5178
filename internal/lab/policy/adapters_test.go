package policy

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// adapterImports are the packages of this repository that an adapter may import: those whose API is
// stable, which doc.go lists.
var adapterImports = [...]string{"", "election", "shard", "presence", "barrier", "counter", "tick", "keep", "keys",
	"fence",
	"flight", "stripe", "locker", "console"}

// An adapter is a module of its own, so a program can use it with a later version of the library.
func TestAdaptersUseOnlyTheAPI(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "adapters", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		own := module + "/adapters/" + filepath.Base(filepath.Dir(name)) + "/"
		for _, path := range (source{file: file}).imports() {
			local, ours := strings.CutPrefix(path, module)
			if !ours || strings.HasPrefix(path, own) {
				continue
			}
			seen++
			if !slices.Contains(adapterImports[:], strings.TrimPrefix(local, "/")) {
				t.Errorf("%s imports %s, whose API may change with any commit", name, path)
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d imports were seen", seen)
	}
}

func TestAdaptersAreListed(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	plugs, tests := read("docs/PLUGS.md"), read("test.sh")
	adapters, err := filepath.Glob(filepath.Join(root, "adapters", "*", "go.mod"))
	if err != nil || len(adapters) == 0 {
		t.Fatal("there are no adapters", err)
	}
	for _, at := range adapters {
		name := filepath.Base(filepath.Dir(at))
		if !strings.Contains(tests, " nested adapters/"+name+" ") {
			t.Errorf("test.sh does not test adapters/%s", name)
		}
		page := "../adapters/" + name + "/README.md"
		if _, err := os.Stat(filepath.Join(filepath.Dir(at), "README.md")); err == nil && !strings.Contains(plugs, page) {
			t.Errorf("docs/PLUGS.md has no link to %s", page)
		}
	}
}
