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

// hosts are the modules that the code of each adapter may import beside mortise: its project, and
// what the API of the project contains.
var hosts = map[string][]string{
	"mortisecertmagic":  {"github.com/caddyserver/certmagic"},
	"mortisecollector":  {"go.opentelemetry.io/collector", "go.uber.org/zap"},
	"mortisecron":       {"github.com/robfig/cron/v3"},
	"mortisedropin":     {},
	"mortisegocron":     {"github.com/go-co-op/gocron/v2"},
	"mortisegoose":      {"github.com/pressly/goose/v3"},
	"mortisekubernetes": {"k8s.io/client-go", "k8s.io/apimachinery"},
	"mortisemigrate":    {"github.com/golang-migrate/migrate/v4"},
	"mortiseotel":       {"go.opentelemetry.io/otel"},
	"mortisepair":       {},
	"mortiseserver":     {"google.golang.org/grpc"},
	"mortisetusd":       {"github.com/tus/tusd/v2"},
	"mortisevault":      {"github.com/hashicorp/vault/sdk"},
	"mortisevet":        {"golang.org/x/tools"},
}

// A user of an adapter gets no code but that of mortise and of the project that the user has.
func TestAdaptersImportTheirHost(t *testing.T) {
	adapters, err := filepath.Glob(filepath.Join(root, "adapters", "*"))
	if err != nil || len(adapters) == 0 {
		t.Fatal("there are no adapters", err)
	}
	for _, at := range adapters {
		name := filepath.Base(at)
		allowed, is := hosts[name]
		if !is {
			t.Errorf("the adapter %s has no entry in hosts", name)
		}
		err := filepath.WalkDir(at, func(path string, entry os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != at || entry.Name() == "testdata" {
					return filepath.SkipDir
				}
				return nil
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, imported := range (source{file: file}).imports() {
				first, _, _ := strings.Cut(imported, "/")
				within := func(host string) bool { return imported == host || strings.HasPrefix(imported, host+"/") }
				if strings.Contains(first, ".") && !within(module) && !slices.ContainsFunc(allowed, within) {
					t.Errorf("%s imports %s, which is not in hosts", path, imported)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
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
