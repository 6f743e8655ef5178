package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unchecked finds calls after which the error is dropped without a word, as errcheck does, of the
// methods that the documentation shows most. The methods of sync.Mutex have no arguments.
var unchecked = regexp.MustCompile(`(?m)^(?:\s|//|>)*(?:defer |go )?\w+\.(?:Unlock|Leave|UnlockSoon|Release|Detach|` +
	`Downgrade|Upgrade|Regain|Resign|Ready)\([^()]+(?:\(\))?\)\s*(?://.*)?$`)

// shown are the files whose code users copy.
var shown = []string{
	"README.md", "doc.go", "example*_test.go", "*/doc.go", "*/example*_test.go", "*/*/example*_test.go",
	"docs/*.md", "adapters/*/README.md", "adapters/*/*.go", "adapters/*/*/doc.go", "examples/*/*.go",
}

// Code that users copy must not drop the error of Unlock, which says that the lock was lost, and
// must not end a process before its deferred Leave.
func TestShownCodeUsesErrors(t *testing.T) {
	seen := 0
	for _, pattern := range shown {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			name := filepath.Base(path)
			example := strings.HasPrefix(name, "example") || strings.Contains(path, "/examples/")
			if strings.HasSuffix(name, "_test.go") && !example {
				continue // a test of an adapter
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			seen++
			for _, call := range unchecked.FindAllString(string(text), -1) {
				t.Errorf("%s drops an error: %s\nReturn it, for example with errors.Join, or assign it to _", path,
					strings.TrimSpace(call))
			}
		}
	}
	if seen < 60 {
		t.Errorf("found only %d files: the rule would pass because it sees nothing", seen)
	}
	for _, drops := range []string{"\tdefer lock.Unlock(ctx)\n", "//\tdefer node.Leave(context.Background())\n"} {
		if !unchecked.MatchString(drops) {
			t.Errorf("the rule does not see %q", drops)
		}
	}
	if unchecked.MatchString("\tdefer mu.Unlock()\n\terr = lock.Unlock(ctx)\n") {
		t.Error("the rule sees an error that is used")
	}
}

// A function whose deferred calls matter, such as Node.Leave, must not call log.Fatal or os.Exit,
// which skip them.
func TestShownCodeRunsItsDeferredCalls(t *testing.T) {
	seen, set := 0, token.NewFileSet()
	for _, pattern := range shown {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if !strings.HasSuffix(path, ".go") {
				continue // the snippets of pages are parts of examples
			}
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			seen++
			for _, fault := range skipped(file) {
				t.Errorf("%s: %s", path, fault)
			}
		}
	}
	if seen < 50 {
		t.Errorf("found only %d files: the rule would pass because it sees nothing", seen)
	}
	const wrong = "package p; func main() { defer node.Leave(ctx); log.Fatal(err) }"
	file, err := parser.ParseFile(set, "", wrong, parser.SkipObjectResolution)
	if err != nil || len(skipped(file)) != 1 {
		t.Errorf("the rule does not see %q: %v", wrong, err)
	}
}

// skipped returns the calls that end the process in functions that have deferred a call before.
func skipped(file *ast.File) (faults []string) {
	for _, d := range file.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is || f.Body == nil {
			continue
		}
		deferred := false
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false
			case *ast.DeferStmt:
				_, cancels := n.Call.Fun.(*ast.Ident) // such as that of a context
				deferred = deferred || !cancels
			case *ast.SelectorExpr:
				x, is := n.X.(*ast.Ident)
				if is && deferred && (x.Name == "log" && strings.HasPrefix(n.Sel.Name, "Fatal") ||
					x.Name == "os" && n.Sel.Name == "Exit") {
					faults = append(faults, f.Name.Name+" calls "+x.Name+"."+n.Sel.Name+" after a defer, which then does not run")
				}
			}
			return true
		})
	}
	return faults
}
