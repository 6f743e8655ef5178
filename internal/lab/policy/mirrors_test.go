package policy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// maxCopied is the maximum number of consecutive statements that a function of the simulation may
// share with a function of the product. Even unrelated programs share sequences of two statements.
const maxCopied = 2

// stretch is a list of statements: the body of a function, or of a block or case in it.
type stretch struct {
	of     string   // file and function
	shapes []uint64 // a hash of the form of each statement
	counts []int    // one for each statement, plus the number of statements nested in it
}

// shapeOf hashes the form of some code. It ignores the names of variables and the values of
// literals.
func shapeOf(code ast.Node) (shape uint64, statements int) {
	b := fnv.New64a()
	ast.Inspect(code, func(n ast.Node) bool {
		if n == nil {
			_, _ = io.WriteString(b, ")")
			return true
		}
		_, _ = fmt.Fprintf(b, "(%s", reflect.TypeOf(n).Elem().Name())
		switch n := n.(type) {
		case *ast.SelectorExpr:
			_, _ = io.WriteString(b, strings.ToLower(n.Sel.Name))
		case *ast.BinaryExpr:
			_, _ = io.WriteString(b, n.Op.String())
		case *ast.UnaryExpr:
			_, _ = io.WriteString(b, n.Op.String())
		case *ast.AssignStmt:
			_, _ = io.WriteString(b, n.Tok.String())
		case *ast.BranchStmt:
			_, _ = io.WriteString(b, n.Tok.String())
		}
		if _, block := n.(*ast.BlockStmt); !block {
			if _, ok := n.(ast.Stmt); ok {
				statements++
			}
		}
		return true
	})
	return b.Sum64(), statements
}

func stretchesOf(path string, file *ast.File) (found []stretch) {
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			var list []ast.Stmt
			switch n := n.(type) {
			case *ast.BlockStmt:
				list = n.List
			case *ast.CaseClause:
				list = n.Body
			case *ast.CommClause:
				list = n.Body
			}
			if len(list) == 0 {
				return true
			}
			s := stretch{of: path + ": " + f.Name.Name}
			for _, statement := range list {
				shape, count := shapeOf(statement)
				s.shapes, s.counts = append(s.shapes, shape), append(s.counts, count)
			}
			found = append(found, s)
			return true
		})
	}
	return found
}

// common returns the number of statements in the longest sequence that two stretches share.
func common(a, b stretch) (largest int) {
	for i := range a.shapes {
		for j := range b.shapes {
			run := 0
			for k := 0; i+k < len(a.shapes) && j+k < len(b.shapes) && a.shapes[i+k] == b.shapes[j+k]; k++ {
				run += a.counts[i+k]
			}
			largest = max(largest, run)
		}
	}
	return largest
}

// If the simulation contained a copy of product code, it would test the copy and not the product.
func TestTheSimulationMirrorsNoShell(t *testing.T) {
	_, files := sources(t)
	pkgs := []string{
		"", "cluster", "session", "raftlog", "transport", "lockfsm",
		"internal/instance", "internal/replica", "internal/queries",
	}
	var simulated, product []stretch
	for _, s := range files {
		top, _, _ := strings.Cut(s.pkg, "/")
		switch {
		case s.test || s.generated:
		case s.pkg == "internal/lab/sim":
			simulated = append(simulated, stretchesOf(s.path, s.file)...)
		case slices.Contains(pkgs, s.pkg) || slices.Contains(pkgs, top):
			product = append(product, stretchesOf(s.path, s.file)...)
		}
	}
	if len(simulated) < 500 || len(product) < 3000 {
		t.Fatalf("found only %d and %d lists of statements: the rule would pass because it sees nothing",
			len(simulated), len(product))
	}
	largest, where := 0, ""
	for _, a := range simulated {
		for _, b := range product {
			n := common(a, b)
			if n > largest {
				largest, where = n, a.of+" and "+b.of
			}
			if n > maxCopied {
				t.Errorf("%s and %s have %d statements in common: let the core decide it, which both run", a.of, b.of,
					n)
			}
		}
	}
	t.Logf("the largest copy has %d statements: %s", largest, where)
}

// Five equal statements among seven must be found, even if variables have other names.
func TestCopiesAreSeen(t *testing.T) {
	var lists [2]stretch
	for i, text := range []string{
		`func (p *proc) Due(now int) { p.log("a"); if s := p.Core.Next(now); s > 0 { p.Core.Take(s); return }; ` +
			`for range now { p.Tick() } }`,
		`func (n *node) due(at int) { if x := n.core.next(at); x > 0 { n.core.take(x); return }; ` +
			`for range at { n.tick() }; n.stop() }`,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", "package p; "+text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		lists[i] = stretchesOf("p.go", file)[0]
	}
	if n := common(lists[0], lists[1]); n != 6 {
		t.Errorf("%d statements are seen to be the same, want 6", n)
	}
}
