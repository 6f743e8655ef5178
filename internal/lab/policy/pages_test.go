package policy

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// pageTest finds a test with its directory. pageSymbol finds an exported name with its package.
	// pageMember finds a field or a method of an exported type of the root.
	pageTest   = featureTest
	pageSymbol = regexp.MustCompile("`([a-z][a-z0-9]*)\\.([A-Z][A-Za-z]*)(?:\\.([A-Z][A-Za-z]*))?`")
	pageMember = regexp.MustCompile("`([A-Z][A-Za-z]*)\\.([A-Za-z]+)`")

	pageFile    = regexp.MustCompile(`(?:^|[^\w./-])((?:[a-z0-9_-]+/)*[a-z0-9_-]+\.(?:go|pml|sh|proto|service))\b`)
	pagePackage = regexp.MustCompile("`((?:[a-z0-9_-]+/)+)`")

	// foreign finds web addresses, and code for other systems.
	foreign = regexp.MustCompile("https?://[^\\s)]+|(?s:```(?:golang|java)\n.*?```)")
)

// tellingPages returns the checked pages, and whether each page contains only names of this
// repository. CHOOSING.md also contains names of other systems.
func tellingPages() map[string]bool {
	return map[string]bool{"GUARANTEES.md": true, "FEATURES.md": true, "ATTACKS.md": true, "OPERATION.md": true,
		"ARCHITECTURE.md": true, "TUTORIAL.md": true, "CHOOSING.md": false, "PLUGS.md": false}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type known struct {
	tests   map[string]bool // "package.TestX"
	names   map[string]bool // of the root: "Node", "Node.Lock", "Config.Dir"
	symbols map[string]bool // "session.Client", "session.Client.Receive"
	paths   map[string]bool // paths of files, relative to the root of the repository
	pkgs    map[string]bool // directories, with a slash at the end
}

func whatIsThere(t *testing.T) known {
	t.Helper()
	_, files := sources(t)
	k := known{symbols: map[string]bool{}, paths: map[string]bool{}, pkgs: map[string]bool{}}
	k.tests, k.names = declared(files)
	nestedTests(t, k.tests)
	for _, s := range files {
		if s.test {
			continue
		}
		name := path.Base(s.pkg)
		if s.pkg == "" {
			name = "mortise"
		}
		for symbol := range symbolsOf(s.file) {
			k.symbols[name+"."+symbol] = true
		}
	}
	err := filepath.WalkDir(root, func(at string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() && entry.Name() == ".git" { // in a Git worktree, .git is a file
			return errOrSkip(err)
		}
		rel, err := filepath.Rel(root, at)
		if entry.IsDir() {
			k.pkgs[filepath.ToSlash(rel)+"/"] = true
		} else {
			k.paths[filepath.ToSlash(rel)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)\w*)\(`)

func nestedTests(t *testing.T, tests map[string]bool) {
	t.Helper()
	var nested []string
	within := func(at string) bool {
		return slices.ContainsFunc(nested, func(dir string) bool {
			return strings.HasPrefix(at, dir+string(filepath.Separator))
		})
	}
	err := filepath.WalkDir(root, func(at string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, err := os.Stat(filepath.Join(at, "go.mod"))
			switch {
			case at != root && strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata":
				return filepath.SkipDir
			case at != root && err == nil:
				nested = append(nested, at)
			}
			return nil
		}
		if !strings.HasSuffix(at, "_test.go") || !within(at) {
			return nil
		}
		text, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(root, filepath.Dir(at))
		for _, match := range testFunc.FindAllStringSubmatch(string(text), -1) {
			tests[filepath.ToSlash(pkg)+"."+match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !tests["adapters/mortiseotel.TestOnlyTheAPIIsImported"] {
		t.Error("the tests of nested modules are not found: the rule would refuse pages that name them")
	}
}

func errOrSkip(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}

// symbolsOf returns the names that a file declares: functions, types, values, "Type.Method" and
// "Type.Field".
func symbolsOf(file *ast.File) map[string]bool {
	found := map[string]bool{}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			found[receiver(d)+d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				addNames(found, spec)
				s, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if methods, ok := s.Type.(*ast.InterfaceType); ok {
					for _, m := range methods.Methods.List {
						for _, name := range m.Names {
							found[s.Name.Name+"."+name.Name] = true
						}
					}
				}
			}
		}
	}
	return found
}

// pageFaults returns the names in a page that do not exist. Unless oursAlone is set, it ignores
// names of other systems.
func pageFaults(page string, k known, oursAlone bool) []string {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	page = foreign.ReplaceAllString(page, "")
	for _, match := range pageTest.FindAllStringSubmatch(page, -1) {
		pkg := match[1]
		if pkg == "mortise" {
			pkg = ""
		}
		if !k.tests[pkg+"."+match[2]] {
			fault("there is no test %s.%s", match[1], match[2])
		}
	}
	for _, match := range pageSymbol.FindAllStringSubmatch(page, -1) {
		name := strings.TrimSuffix(match[1]+"."+match[2]+"."+match[3], ".")
		if pageTest.MatchString(match[0]) || k.names[name] || !oursAlone && !k.begins(match[1]+".") {
			continue
		}
		if !k.symbols[name] {
			fault("there is no %s", name)
		}
	}
	for _, match := range pageMember.FindAllStringSubmatch(page, -1) {
		if name := match[1] + "." + match[2]; !k.names[name] && !k.anywhere(name) &&
			(oursAlone || k.anywhere(match[1])) {
			fault("there is no %s", name)
		}
	}
	for _, match := range pageFile.FindAllStringSubmatch(page, -1) {
		if !k.paths[match[1]] {
			fault("there is no file %s", match[1])
		}
	}
	for _, match := range pagePackage.FindAllStringSubmatch(page, -1) {
		if !k.pkgs[match[1]] {
			fault("there is no directory %s", match[1])
		}
	}
	return faults
}

// This method reports whether any known symbol begins with the given prefix, such as "fence.".
func (k known) begins(name string) bool {
	for symbol := range k.symbols {
		if strings.HasPrefix(symbol, name) {
			return true
		}
	}
	return false
}

// anywhere reports whether any package declares the given member, such as "Log.Propose".
func (k known) anywhere(member string) bool {
	for symbol := range k.symbols {
		if _, name, _ := strings.Cut(symbol, "."); name == member {
			return true
		}
	}
	return false
}

func TestPagesNameWhatIsThere(t *testing.T) {
	k := whatIsThere(t)
	for name, oursAlone := range tellingPages() {
		for _, fault := range pageFaults(readPage(t, name), k, oursAlone) {
			t.Errorf("docs/%s: %s", name, fault)
		}
	}
	plugs, err := filepath.Glob(filepath.Join(root, "adapters", "*", "README.md"))
	if err != nil || len(plugs) == 0 {
		t.Fatal("no adapter has a README", err)
	}
	named := 0
	for _, page := range plugs {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range pageTest.FindAllStringSubmatch(string(text), -1) {
			if named++; !k.tests[match[1]+"."+match[2]] {
				t.Errorf("%s: there is no test %s", page, match[0])
			}
		}
	}
	if named < 20 {
		t.Errorf("the pages of the adapters name %d tests: the rule would pass because it sees nothing", named)
	}
}

func TestPageRuleCatches(t *testing.T) {
	k := known{
		tests: map[string]bool{".TestLock": true}, names: map[string]bool{"Node.Lock": true},
		symbols: map[string]bool{"session.Client": true, "session.Client.Down": true},
		paths:   map[string]bool{"session/client.go": true}, pkgs: map[string]bool{"internal/lab/sim/": true},
	}
	right := "`mortise.TestLock`, `Node.Lock`, `session.Client`, `Client.Down`, `session/client.go`, a[\"session/client.go\"], `internal/lab/sim/`, https://example.org/lock.go"
	if faults := pageFaults(right, k, true); len(faults) > 0 {
		t.Fatalf("a right page: %q", faults)
	}
	if faults := pageFaults("`api.Lock`, `os.Exit`, `Revoker.attemptRevoke`, `session.Client`", k,
		false); len(faults) > 0 {
		t.Fatalf("a page that speaks of others: %q", faults)
	}
	if faults := pageFaults("`session.Clients`, `Client.Up`", k, false); len(faults) != 2 {
		t.Errorf("a page that speaks of others, and of what we have not: %q", faults)
	}
	for what, change := range map[string][2]string{
		"a test that is gone":            {"TestLock", "TestLocks"},
		"a call that is gone":            {"Node.Lock", "Node.Look"},
		"a type that is gone":            {"`session.Client`", "`session.Clients`"},
		"a method that is gone":          {"Client.Down", "Client.Up"},
		"a file that is gone":            {"`session/client.go`", "`session/clients.go`"},
		"a file in a diagram":            {"a[\"session/client.go\"]", "a[\"session/clients.go\"]"},
		"a directory that has moved":     {"internal/lab/sim/", "internal/simulation/"},
		"a file in another directory":    {"`session/client.go`", "`client.go`"},
		"a symbol of another package":    {"`session.Client`", "`raftlog.Client`"},
		"a test of another directory":    {"`mortise.TestLock`", "`session.TestLock`"},
		"a file beside a sentence's end": {"https://example.org/lock.go", "see lock.go."},
	} {
		if faults := pageFaults(strings.Replace(right, change[0], change[1], 1), k, true); len(faults) != 1 {
			t.Errorf("%s: %q", what, faults)
		}
	}
}
