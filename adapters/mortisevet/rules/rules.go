// Package rules has the analyzers of mortisevet, for a program that joins them with others:
//
//	lockleak      a lock that some path of the function does not unlock
//	outerctx      work under a lock with the context outside of the lock
//	copiedlock    a Lock that is copied
//	droppedtoken  a token that is requested and dropped
//	unlockerr     an ignored error of Unlock in a function that then returns success
//
// # Guarantees
//
// An analyzer reports only what it can know. It knows the packages of mortise by their import
// paths, and locks by their types. If a lock leaves the function, for example as a result, in a
// field, through a channel or as an argument, the analyzer assumes that it is used rightly there.
// Test files are not judged, except by copiedlock: the end of a test's node ends its locks.
//
// # Concurrency
//
// Each call returns new analyzers, which have no state.
//
// # Failure
//
// An analyzer never fails. If a function has too many paths to follow, it reports nothing.
//
// # Limits
//
// Each function is judged by itself: a rule does not follow a call to another function.
package rules

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/cfg"
)

// All returns one analyzer for each rule.
func All() []*analysis.Analyzer {
	return []*analysis.Analyzer{LockLeak(), OuterCtx(), CopiedLock(), DroppedToken(), UnlockErr()}
}

// page is where each rule is described with examples.
const page = "https://pkg.go.dev/github.com/mortise-lock/mortise/adapters/mortisevet"

// function is a function with a body, declared or literal.
type function struct {
	node  ast.Node // *ast.FuncDecl or *ast.FuncLit
	body  *ast.BlockStmt
	kind  *types.Signature
	graph *cfg.CFG
}

// functions returns the functions of a package outside of its test files.
func functions(pass *analysis.Pass) (all []function) {
	graphs := pass.ResultOf[ctrlflow.Analyzer].(*ctrlflow.CFGs)
	nodes := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	nodes.Preorder([]ast.Node{(*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)}, func(n ast.Node) {
		if inTest(pass, n) {
			return
		}
		switch n := n.(type) {
		case *ast.FuncDecl:
			if f, is := pass.TypesInfo.Defs[n.Name].(*types.Func); is && n.Body != nil {
				all = append(all, function{n, n.Body, f.Signature(), graphs.FuncDecl(n)})
			}
		case *ast.FuncLit:
			if kind, is := pass.TypesInfo.TypeOf(n).(*types.Signature); is {
				all = append(all, function{n, n.Body, kind, graphs.FuncLit(n)})
			}
		}
	})
	return all
}

func inTest(pass *analysis.Pass, n ast.Node) bool {
	return strings.HasSuffix(pass.Fset.File(n.Pos()).Name(), "_test.go")
}
