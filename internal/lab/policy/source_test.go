package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/mortise-lock/mortise"

// root is the module's root directory, relative to this directory.
const root = "../../.."

type source struct {
	path      string // from the root, with slashes
	pkg       string // the directory of the file, relative to the root; "" for the root itself
	test      bool
	generated bool
	lines     int
	file      *ast.File
}

// sources returns every Go file of the module and of its nested module locker, whose names the root
// has, too. All tests share the syntax trees, so no test may change them.
func sources(t *testing.T) (*token.FileSet, []source) {
	t.Helper()
	tree := parsed()
	if tree.err != nil {
		t.Fatal(tree.err)
	}
	if len(tree.found) < 30 {
		t.Fatalf("found only %d Go files: the rules would pass because they see nothing", len(tree.found))
	}
	return tree.set, tree.found
}

type tree struct {
	set   *token.FileSet
	found []source
	err   error
}

// parsed reads the tree once for all tests.
var parsed = sync.OnceValue(func() tree {
	set := token.NewFileSet()
	var found []source
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, nested := os.Stat(filepath.Join(path, "go.mod"))
			nests := nested == nil && path != filepath.Join(root, "locker")
			if path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || nests) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		file, err := parser.ParseFile(set, rel, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(rel))
		if pkg == "." {
			pkg = ""
		}
		found = append(found, source{
			path: rel, pkg: pkg, test: strings.HasSuffix(rel, "_test.go"), generated: ast.IsGenerated(file),
			lines: strings.Count(string(text), "\n"), file: file,
		})
		return nil
	})
	return tree{set, found, err}
})

func (s source) imports() []string {
	var paths []string
	for _, i := range s.file.Imports {
		paths = append(paths, strings.Trim(i.Path.Value, `"`))
	}
	return paths
}

func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}
