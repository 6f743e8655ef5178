package rules

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/types/typeutil"
)

// UnlockErr returns the analyzer that finds an ignored error of Unlock where it matters.
func UnlockErr() *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "unlockerr",
		URL:  page,
		Doc: `find an ignored error of Unlock in a function that then returns success

Unlock returns nil only if the lock was held until then. Its error is the last word that the lock
was lost before the work had ended. It matters to a function that returns an error: a nil error
promises that the work was protected. The rule reports Unlock as a statement, or a deferred Unlock
whose result is dropped, of an exclusive lock that the function has requested, if a path leads from
it to a return whose error is nil, or is a variable or the result of a call that can be nil.

Not reported: a result that is assigned to _, a function that returns no error, and a function that
calls Token, Put, Err, Done or Regain of the lock, because a fence, the group or the function itself
then notices the loss. Nor is a lock that leaves the function, and UnlockSoon, which promises less.
Test files are not judged.`,
		Requires: []*analysis.Analyzer{inspect.Analyzer, ctrlflow.Analyzer},
		Run: func(pass *analysis.Pass) (any, error) {
			for _, f := range functions(pass) {
				if n := f.kind.Results().Len(); n == 0 || !isError(f.kind.Results().At(n-1).Type()) {
					continue
				}
				for _, g := range grants(pass.TypesInfo, &f) {
					if g.lock != nil && g.exclusive(pass.TypesInfo) && !protected(pass.TypesInfo, &f, g.lock) {
						ignored(pass, &f, &g)
					}
				}
			}
			return nil, nil
		},
	}
}

// protected reports whether something else than Unlock notices the loss of v.
func protected(info *types.Info, f *function, v *types.Var) bool {
	return slices.ContainsFunc(usesOf(info, f.body, v), func(u use) bool {
		return u.call != nil &&
			slices.Contains([]string{"Token", "Put", "Err", "Done", "Regain"}, methodOf(info, u.call, v))
	})
}

// The marks of a path: the position in dropping of the ignored Unlock, plus one. It is negative
// after an Unlock that was called, and positive after a deferred one.

// ignored reports an Unlock of g whose result is dropped before f returns success.
func ignored(pass *analysis.Pass, f *function, g *grant) {
	info := pass.TypesInfo
	var dropping []*ast.CallExpr
	bad := map[*ast.CallExpr]token.Pos{}
	complete := f.follow(info, g, func(n ast.Node, p *path) bool {
		if p.phase == free {
			return true
		}
		if call, deferred := drops(info, n, g.lock); call != nil {
			at := slices.Index(dropping, call)
			if at < 0 {
				at = len(dropping)
				dropping = append(dropping, call)
			}
			if p.mark = -1 - at; deferred {
				p.mark = 1 + at
			}
			return true
		}
		for _, u := range usesOf(info, n, g.lock) {
			if u.what >= replacing {
				return false
			}
		}
		ret, returns := n.(*ast.ReturnStmt)
		if !returns {
			return true
		}
		at, called := p.mark, false
		if at < 0 {
			at, called = -at, true
		}
		if at != 0 && f.succeeds(info, ret, p, called) {
			bad[dropping[at-1]] = ret.Pos()
		}
		return false
	})
	for _, call := range dropping {
		if at := bad[call]; complete && at.IsValid() {
			pass.Report(analysis.Diagnostic{Pos: call.Pos(), End: call.End(),
				Message: "the error of Unlock is ignored, and the function may then return success although the lock was lost: " +
					"return it, for example with errors.Join, or assign it to _",
				Related: []analysis.RelatedInformation{{Pos: at, Message: "this return may be a success"}}})
		}
	}
}

// drops returns the call of Unlock of v whose result n drops, and whether it is deferred.
func drops(info *types.Info, n ast.Node, v *types.Var) (call *ast.CallExpr, deferred bool) {
	switch n := n.(type) {
	case *ast.ExprStmt:
		call, _ = ast.Unparen(n.X).(*ast.CallExpr)
	case *ast.DeferStmt:
		call, deferred = n.Call, true
		lit, is := ast.Unparen(n.Call.Fun).(*ast.FuncLit)
		if !is {
			break
		}
		call = nil
		uses := usesOf(info, lit, v)
		if len(uses) != 1 || uses[0].what != ending {
			return nil, false
		}
		for _, s := range lit.Body.List {
			if s, is := s.(*ast.ExprStmt); is && s.X == ast.Expr(uses[0].call) {
				call = uses[0].call
			}
		}
	}
	if call == nil || methodOf(info, call, v) != "Unlock" {
		return nil, false
	}
	return call, deferred
}

// succeeds reports whether a return may return a nil error. If Unlock was called before, the result
// of a later call says nothing about the work under the lock.
func (f *function) succeeds(info *types.Info, ret *ast.ReturnStmt, p *path, called bool) bool {
	results := f.kind.Results()
	if len(ret.Results) == 0 {
		v := results.At(results.Len() - 1)
		return v.Name() != "" && !p.failed(v)
	}
	last := ast.Unparen(ret.Results[len(ret.Results)-1])
	if isNil(info, last) {
		return true
	}
	if v := variable(info, last); v != nil {
		return v.Parent() != v.Pkg().Scope() && !p.failed(v)
	}
	call, is := last.(*ast.CallExpr)
	if !is || called || info.Types[call.Fun].IsType() {
		return false
	}
	if callee, is := typeutil.Callee(info, call).(*types.Func); is && callee.Pkg() != nil &&
		slices.Contains([]string{"errors", "fmt"}, callee.Pkg().Path()) {
		return false
	}
	return !slices.ContainsFunc(call.Args, func(e ast.Expr) bool { return isError(info.TypeOf(e)) })
}
