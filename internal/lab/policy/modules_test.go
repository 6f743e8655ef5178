package policy

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type goMod struct {
	Require []struct{ Path, Version string }
	Replace []any
	Exclude []any
}

func modOf(t *testing.T, pkg string) (mod goMod) {
	t.Helper()
	out, err := exec.Command("go", "mod", "edit", "-json", filepath.Join(root, pkg, "go.mod")).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	return mod
}

// The go command ignores replace directives in a required module, and refuses to install a module
// that contains one.
func TestInstalledModulesStandAlone(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`const version = "(v\d+\.\d+\.\d+)"`).FindSubmatch(text)
	if version == nil {
		t.Fatal("doc.go has no version of the form v1.2.3")
	}
	adapters, err := filepath.Glob(filepath.Join(root, "adapters", "*", "go.mod"))
	if err != nil || len(adapters) == 0 {
		t.Fatal("there are no adapters", err)
	}
	for _, at := range append(adapters, filepath.Join(root, "go.mod"), filepath.Join(root, "locker", "go.mod")) {
		pkg, _ := filepath.Rel(root, filepath.Dir(at))
		mod := modOf(t, pkg)
		if len(mod.Replace)+len(mod.Exclude) > 0 {
			t.Errorf("%s/go.mod has a replace or an exclude: users cannot install it", pkg)
		}
		for _, r := range mod.Require {
			if strings.HasPrefix(r.Path+"/", module+"/") && r.Version != string(version[1]) {
				t.Errorf("%s/go.mod requires %s %s, and doc.go has %s: they are released together", pkg, r.Path,
					r.Version, version[1])
			}
		}
	}
}

// A module without a go.work of its own would be built in that of the root, which does not have it.
// What a module requires of this repository is replaced by the code beside it, in its go.work or,
// if it is not installed by users, in its go.mod.
func TestEachModuleIsBuiltWithTheTree(t *testing.T) {
	var modules []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if hidden := path != root && strings.HasPrefix(entry.Name(), "."); err == nil && entry.IsDir() && hidden {
			return filepath.SkipDir
		}
		if entry.Name() == "go.mod" {
			modules = append(modules, filepath.Dir(path))
		}
		return err
	})
	if err != nil || len(modules) < 15 {
		t.Fatalf("only the modules %q are seen: %v", modules, err)
	}
	for _, dir := range modules {
		pkg, _ := filepath.Rel(root, dir)
		work, err := os.ReadFile(filepath.Join(dir, "go.work"))
		if err != nil {
			t.Errorf("%s has no go.work: %v", pkg, err)
			continue
		}
		uses := regexp.MustCompile(`(?m)^use.*`).FindAllString(string(work), -1)
		if !slices.Equal(uses, []string{"use ."}) {
			t.Errorf("%s/go.work has to use its own module and no other", pkg)
		}
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range modOf(t, pkg).Require {
			replaced := regexp.MustCompile(`(?m)^\s*(replace )?` + regexp.QuoteMeta(r.Path) + ` => \.`)
			if strings.HasPrefix(r.Path+"/", module+"/") && !replaced.Match(work) && !replaced.Match(mod) {
				t.Errorf("%s requires %s, and neither its go.work nor its go.mod replaces it", pkg, r.Path)
			}
		}
	}
}

// A project that accepts locks by the module locker gets no other module. The build list also has
// the modules that no package imports, and those of tests.
func TestTheInterfaceRequiresNothing(t *testing.T) {
	list := exec.Command("go", "list", "-m", "all")
	list.Dir, list.Env = filepath.Join(root, "locker"), append(os.Environ(), "GOWORK=off")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.TrimSpace(string(out)), module+"/locker"; got != want {
		t.Errorf("the modules of %s are\n%s\nand may be only itself", want, got)
	}
}

// Users of the library also get every module that the root module requires. To add a requirement,
// add it to testdata/root-modules.
func TestTheRootsModules(t *testing.T) {
	var got []string
	for _, r := range modOf(t, ".").Require {
		got = append(got, r.Path)
	}
	slices.Sort(got)
	text, err := os.ReadFile("testdata/root-modules")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Fields(string(text)); !slices.Equal(got, want) {
		t.Errorf("the root's modules are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
