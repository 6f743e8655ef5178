package policy

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// calls returns the calls of a function of an imported package in a file, such as slow.Nightly.
func calls(file *ast.File, pkg string, names ...string) (found []*ast.CallExpr) {
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(names, f.Sel.Name) {
				if x, ok := f.X.(*ast.Ident); ok && x.Name == pkg {
					found = append(found, call)
				}
			}
		}
		return true
	})
	return found
}

// misplaced returns the calls of internal/lab/slow that test.sh does not find, and the number of
// the others.
func misplaced(file *ast.File) (wrong []*ast.CallExpr, right int) {
	first := map[ast.Expr]bool{}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Body != nil && len(f.Body.List) > 0 {
			if s, ok := f.Body.List[0].(*ast.ExprStmt); ok {
				first[s.X] = true
			}
		}
	}
	for _, call := range calls(file, "slow", "UnderRace", "Nightly") {
		if first[call] {
			right++
		} else {
			wrong = append(wrong, call)
		}
	}
	return wrong, right
}

// A test that runs only sometimes must say so in its first statement: test.sh reads it there, and
// prints what a merge leaves out.
func TestSlowTestsSaySoFirst(t *testing.T) {
	set, files := sources(t)
	all := 0
	for _, s := range files {
		if !s.test {
			continue
		}
		wrong, right := misplaced(s.file)
		all += right
		for _, call := range wrong {
			t.Errorf("%v: make it the first statement of a test", set.Position(call.Pos()))
		}
	}
	if all < 20 {
		t.Errorf("found only %d slow tests: the rule would pass because it sees nothing", all)
	}
}

// A package whose tests start processes must find those that are left (internal/lab/leftover).
func TestStartedProcessesAreSought(t *testing.T) {
	_, files := sources(t)
	starts, seeks := map[string]bool{}, map[string]bool{}
	for _, s := range files {
		if !s.test {
			continue
		}
		if slices.Contains(s.imports(), "os/exec") {
			ast.Inspect(s.file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 0 {
					if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Start" {
						starts[s.pkg] = true
					}
				}
				return true
			})
		}
		if len(calls(s.file, "leftover", "Run"))+len(calls(s.file, "trio", "Main")) > 0 ||
			s.pkg == "internal/lab/leftover" || s.pkg == "internal/lab/trio" {
			seeks[s.pkg] = true
		}
	}
	if len(starts) < 4 {
		t.Errorf("only %v start processes: the rule would pass because it sees nothing", starts)
	}
	for pkg := range starts {
		if !seeks[pkg] {
			t.Errorf("%s starts processes: call leftover.Run in its TestMain", pkg)
		}
	}
}
