package policy

import (
	"go/ast"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	faceFiles  = 19
	faceTests  = 20
	faceFields = 8 // number of fields of the struct Node
)

// New readers see the root package first.
func TestTheRootIsTheFace(t *testing.T) {
	_, files := sources(t)
	product, tests, lines, fields := 0, 0, 0, 0
	for _, s := range files {
		switch {
		case s.pkg != "":
			continue
		case s.test:
			tests++
			continue
		}
		product++
		text, err := os.ReadFile(filepath.Join(root, s.path))
		if err != nil {
			t.Fatal(err)
		}
		lines += strings.Count(string(text), "\n")
		ast.Inspect(s.file, func(n ast.Node) bool {
			if is, ok := n.(*ast.TypeSpec); ok && is.Name.Name == "Node" {
				fields = is.Type.(*ast.StructType).Fields.NumFields()
			}
			return true
		})
	}
	t.Logf("the root has %d files of %d lines and %d of tests; Node has %d fields", product, lines, tests, fields)
	if product == 0 || fields == 0 {
		t.Fatal("the root is not found: the rule would pass because it sees nothing")
	}
	if product > faceFiles || tests > faceTests || fields > faceFields {
		t.Errorf("the root may have %d files and %d of tests, and Node %d fields: what is no face belongs into "+
			"internal/instance, and tests of whole nodes into internal/lab/e2e",
			faceFiles, faceTests, faceFields)
	}
}
