package policy

import (
	"go/ast"
	"testing"
)

// A planted bug must be an edit below internal/lab/mutants, not a call of a function named bug.
func TestProductHasNoPlantedBugs(t *testing.T) {
	_, files := sources(t)
	for _, s := range files {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "bug" {
					t.Errorf("%s asks for a planted bug: write it as an edit of internal/lab/mutants", s.path)
				}
			}
			return true
		})
	}
}
