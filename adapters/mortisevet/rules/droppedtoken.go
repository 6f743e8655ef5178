package rules

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/types/typeutil"
)

// DroppedToken returns the analyzer that finds a token that is requested and dropped.
func DroppedToken() *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "droppedtoken",
		URL:  page,
		Doc: `find a token that is requested and dropped

A token protects only a resource that receives it. No analyzer can know which calls write, so the
rule reports only code that cannot be meant:

  - a call of Token or TokenFrom as a statement, or with all its results assigned to _;
  - a variable that has a token of Token, TokenFrom or Do, if its only use is to be assigned to _;
  - a constant as the token of a call of package fence, after a lock was requested in the function
    or in a function literal that Do runs.

A token that is not requested is right: many locks protect nothing that compares tokens. So is a
parameter of the name _. Test files are not judged.`,
		Requires: []*analysis.Analyzer{inspect.Analyzer, ctrlflow.Analyzer},
		Run: func(pass *analysis.Pass) (any, error) {
			under := map[ast.Node]bool{} // function literals that have a token as parameter
			all := functions(pass)
			for _, f := range all {
				inspectOwn(f.body, func(n ast.Node) {
					if call, is := n.(*ast.CallExpr); is && runs(pass.TypesInfo, call) {
						for _, lit := range literals(pass.TypesInfo, call) {
							under[lit] = true
						}
					}
				})
			}
			for _, f := range all {
				dropped(pass, &f, under[f.node])
				constants(pass, &f, under[f.node])
			}
			return nil, nil
		},
	}
}

// dropped reports the tokens that f requests and drops.
func dropped(pass *analysis.Pass, f *function, under bool) {
	info := pass.TypesInfo
	inspectOwn(f.body, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.ExprStmt:
			if call, is := ast.Unparen(n.X).(*ast.CallExpr); is && givesToken(info, call) {
				pass.ReportRangef(n, "the token is dropped: give it to the resource, or leave the call out")
			}
		case *ast.AssignStmt:
			if !slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return !isIdent(e, "_") }) && len(n.Rhs) == 1 {
				call, calls := ast.Unparen(n.Rhs[0]).(*ast.CallExpr)
				v := variable(info, n.Rhs[0])
				switch {
				case calls && givesToken(info, call):
					pass.ReportRangef(n, "the token is dropped: give it to the resource, or leave the call out")
				case v != nil && isToken(v.Type()) && f.declares(v) && usedOnce(info, f, v) && (under && f.hasParam(v) ||
					requested(info, f, v)):
					pass.ReportRangef(n, "the token is dropped: give it to the resource, or name the variable _")
				}
			}
		}
	})
}

// givesToken reports whether a call returns the token of a lock or of a context.
func givesToken(info *types.Info, call *ast.CallExpr) bool {
	f, is := typeutil.Callee(info, call).(*types.Func)
	if !is {
		return false
	}
	if s, is := ast.Unparen(call.Fun).(*ast.SelectorExpr); is && f.Signature().Recv() != nil {
		return f.Name() == "Token" && isHandle(info.TypeOf(s.X)) && isToken(info.TypeOf(call))
	}
	path, own := ours(f.Pkg())
	return own && (path == "" || path == "locker") && f.Name() == "TokenFrom"
}

// usedOnce reports whether v is used in one place only.
func usedOnce(info *types.Info, f *function, v *types.Var) bool {
	return len(usesOf(info, f.body, v)) == 1
}

func (f *function) hasParam(v *types.Var) bool {
	for i := range f.kind.Params().Len() {
		if f.kind.Params().At(i) == v {
			return true
		}
	}
	return false
}

// requested reports whether f assigns the result of Token or TokenFrom to v.
func requested(info *types.Info, f *function, v *types.Var) (is bool) {
	inspectOwn(f.body, func(n ast.Node) {
		var names, values []ast.Expr
		switch n := n.(type) {
		case *ast.AssignStmt:
			names, values = n.Lhs, n.Rhs
		case *ast.ValueSpec:
			for _, name := range n.Names {
				names = append(names, name)
			}
			values = n.Values
		}
		for i, value := range values {
			call, calls := ast.Unparen(value).(*ast.CallExpr)
			is = is || calls && givesToken(info, call) && variable(info, names[i]) == v
		}
	})
	return is
}

// constants reports the constants that f passes to package fence as the token of its lock.
func constants(pass *analysis.Pass, f *function, under bool) {
	info := pass.TypesInfo
	from := f.body.Pos()
	if !under {
		held := grants(info, f)
		if len(held) == 0 {
			return
		}
		from = held[0].call.End()
	}
	inspectOwn(f.body, func(n ast.Node) {
		call, is := n.(*ast.CallExpr)
		if !is || call.Pos() < from {
			return
		}
		callee, is := typeutil.Callee(info, call).(*types.Func)
		if !is {
			return
		}
		path, own := ours(callee.Pkg())
		if !own || path != "fence" && !strings.HasPrefix(path, "fence/") || callee.Name() == "Forget" {
			return
		}
		params := callee.Signature().Params()
		for i, arg := range call.Args {
			if i < params.Len() && isToken(params.At(i).Type()) && info.Types[arg].Value != nil {
				pass.ReportRangef(arg, "the constant %s is not the token of the lock, which is dropped: pass Token of the lock",
					types.ExprString(arg))
			}
		}
	})
}
