package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/types/typeutil"
)

// OuterCtx returns the analyzer that finds work under a lock with the context outside of the lock.
func OuterCtx() *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "outerctx",
		URL:  page,
		Doc: `find work under a lock with the context outside of the lock

If a lock is lost, only its own context ends: the one that Node.Do passes to its function, or that
Lock.Context returns. The rule reports the context of the request, or one that the request's was made
from, as the argument of a call

  - in the function literal that Do, DoNested, keep.Run, election.Run and others run under the lock;
  - after the request of an exclusive lock, until its Unlock, or until the lock leaves the function,
    in code that never runs without the lock.

Not reported: Unlock and other calls that end something, calls of mortise that request no lock,
package context, log/slog, goroutines, deferred calls, function literals that are not called at
once, and the handling of an error, since the lock's context may have ended there. A function that
calls Err, Done or Regain of the lock notices the loss itself and is not reported. Test files are
not judged.`,
		Requires: []*analysis.Analyzer{inspect.Analyzer, ctrlflow.Analyzer},
		Run: func(pass *analysis.Pass) (any, error) {
			said := map[token.Pos]bool{}
			for _, f := range functions(pass) {
				inspectOwn(f.body, func(n ast.Node) {
					if call, is := n.(*ast.CallExpr); is && runs(pass.TypesInfo, call) {
						underDo(pass, call, said)
					}
				})
				for _, g := range grants(pass.TypesInfo, &f) {
					if g.lock != nil && g.exclusive(pass.TypesInfo) && !watches(pass.TypesInfo, &f, g.lock) {
						underLock(pass, &f, &g, said)
					}
				}
			}
			return nil, nil
		},
	}
}

// outer is a context outside of a lock: a variable, or the method Context of a request of net/http.
type outer struct {
	v       *types.Var
	request bool
}

// outerOf returns what e names, or false if it is no variable and no Context of one.
func outerOf(info *types.Info, e ast.Expr) (outer, bool) {
	if v := variable(info, e); v != nil {
		return outer{v: v}, isContext(v.Type())
	}
	call, is := ast.Unparen(e).(*ast.CallExpr)
	if !is || len(call.Args) != 0 {
		return outer{}, false
	}
	s, is := call.Fun.(*ast.SelectorExpr)
	if !is || s.Sel.Name != "Context" {
		return outer{}, false
	}
	v := variable(info, s.X)
	if v == nil {
		return outer{}, false
	}
	p, is := types.Unalias(v.Type()).(*types.Pointer)
	return outer{v, true}, is && isNamed(p.Elem(), "net/http", "Request")
}

// underDo reports the outer context of a call of Do in its function literals.
func underDo(pass *analysis.Pass, call *ast.CallExpr, said map[token.Pos]bool) {
	o, is := outerOf(pass.TypesInfo, call.Args[0])
	if !is {
		return
	}
	for _, lit := range literals(pass.TypesInfo, call) {
		if assigns(pass.TypesInfo, lit.Body, o.v) {
			continue
		}
		all := []outer{o}
		for _, v := range derived(pass.TypesInfo, lit.Body, o.v) {
			all = append(all, outer{v: v})
		}
		for _, arg := range argumentsIn(pass.TypesInfo, lit.Body, all) {
			say(pass, arg, said, fmt.Sprintf("in the function of %s", calleeName(call)),
				"the context that the function is given")
		}
	}
}

// underLock reports the outer context of a request while its lock is held.
func underLock(pass *analysis.Pass, f *function, g *grant, said map[token.Pos]bool) {
	info := pass.TypesInfo
	o, is := outerOf(info, g.call.Args[0])
	if !is {
		return
	}
	all := []outer{o}
	for v := o.v; v != nil && !o.request; {
		if v = parent(info, f.body, v); v != nil && !slices.Contains(all, outer{v: v}) {
			all = append(all, outer{v: v})
			continue
		}
		break
	}
	for _, o := range slices.Clone(all) {
		for _, v := range derived(info, f.body, o.v) {
			all = append(all, outer{v: v})
		}
	}
	args := argumentsIn(info, f.body, all)
	if len(args) == 0 {
		return
	}
	holds, loose := map[ast.Expr]bool{}, map[ast.Expr]bool{}
	complete := f.follow(info, g, func(n ast.Node, p *path) bool {
		_, deferred := n.(*ast.DeferStmt)
		interested := !slices.ContainsFunc(usesOf(info, n, g.lock), func(u use) bool {
			return u.what == leaving || u.what == replacing || u.what == ending && !deferred
		})
		for _, arg := range args {
			if n.Pos() <= arg.Pos() && arg.End() <= n.End() {
				holds[arg] = holds[arg] || interested && p.phase == held
				loose[arg] = loose[arg] || !interested || p.phase != held
			}
		}
		if !interested {
			return false
		}
		return !slices.ContainsFunc(assigned(info, n), func(a assignment) bool {
			return slices.ContainsFunc(all, func(o outer) bool { return o.v == a.v }) && n != g.stmt &&
				!derives(info, a.value, all)
		})
	})
	for _, arg := range args {
		if complete && holds[arg] && !loose[arg] {
			say(pass, arg, said, fmt.Sprintf("while the lock of %s is held", calleeName(g.call)),
				"Context of the lock")
		}
	}
}

func say(pass *analysis.Pass, arg ast.Expr, said map[token.Pos]bool, where, context string) {
	if !said[arg.Pos()] {
		said[arg.Pos()] = true
		pass.ReportRangef(arg, "%s does not end when the lock is lost: %s use %s", types.ExprString(arg), where, context)
	}
}

// watches reports whether f learns of the loss of v by other means than its context.
func watches(info *types.Info, f *function, v *types.Var) bool {
	return slices.ContainsFunc(usesOf(info, f.body, v), func(u use) bool {
		return u.call != nil && slices.Contains([]string{"Err", "Done", "Regain"}, methodOf(info, u.call, v))
	})
}

func assigns(info *types.Info, root ast.Node, v *types.Var) (found bool) {
	ast.Inspect(root, func(n ast.Node) bool {
		found = found || n != nil && slices.ContainsFunc(assigned(info, n), func(a assignment) bool { return a.v == v })
		return !found
	})
	return found
}

// contextWith returns the parent of a context that e makes with a function of package context, or
// nil.
func contextWith(info *types.Info, e ast.Expr) *types.Var {
	call, is := e.(*ast.CallExpr)
	if !is || len(call.Args) == 0 {
		return nil
	}
	f, is := typeutil.Callee(info, call).(*types.Func)
	if !is || f.Pkg() == nil || f.Pkg().Path() != "context" || !strings.HasPrefix(f.Name(), "With") ||
		f.Name() == "WithoutCancel" {
		return nil
	}
	return variable(info, call.Args[0])
}

func derives(info *types.Info, e ast.Expr, from []outer) bool {
	v := contextWith(info, e)
	return v != nil && slices.Contains(from, outer{v: v})
}

// derivations calls visit for each context that a function of package context makes in body.
func derivations(info *types.Info, body ast.Node, visit func(child, parent *types.Var)) {
	inspectOwn(body, func(n ast.Node) {
		if s, is := n.(*ast.AssignStmt); is && len(s.Rhs) == 1 {
			if from, child := contextWith(info, s.Rhs[0]), variable(info, s.Lhs[0]); from != nil && child != nil {
				visit(child, from)
			}
		}
	})
}

// parent returns the context from which v is made, or nil.
func parent(info *types.Info, body ast.Node, v *types.Var) (from *types.Var) {
	derivations(info, body, func(child, parent *types.Var) {
		if child == v && parent != v {
			from = parent
		}
	})
	return from
}

// derived returns the contexts that are made from v.
func derived(info *types.Info, body ast.Node, v *types.Var) (all []*types.Var) {
	derivations(info, body, func(child, parent *types.Var) {
		if (parent == v || slices.Contains(all, parent)) && child != v {
			all = append(all, child)
		}
	})
	return all
}

// argumentsIn returns the arguments in a body that are one of the outer contexts, in the calls that
// the rule judges.
func argumentsIn(info *types.Info, body ast.Node, all []outer) (found []ast.Expr) {
	var inspect func(n ast.Node) bool
	walk := func(nodes ...ast.Node) {
		for _, n := range nodes {
			ast.Inspect(n, inspect)
		}
	}
	statements := func(list []ast.Stmt) {
		for _, s := range list {
			ast.Inspect(s, inspect)
		}
	}
	inspect = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.DeferStmt, *ast.FuncLit:
			return false
		case *ast.IfStmt:
			if n.Init != nil {
				walk(n.Init)
			}
			walk(n.Cond)
			failed, worked := handles(info, n.Cond)
			if !failed {
				walk(n.Body)
			}
			if n.Else != nil && !worked {
				walk(n.Else)
			}
			return false
		case *ast.CaseClause:
			if slices.ContainsFunc(n.List, func(e ast.Expr) bool { failed, _ := handles(info, e); return failed }) {
				return false
			}
		case *ast.CommClause:
			if n.Comm != nil && receivesDone(n.Comm) {
				return false
			}
			statements(n.Body)
			return false
		case *ast.CallExpr:
			if lit, is := ast.Unparen(n.Fun).(*ast.FuncLit); is {
				walk(lit.Body)
			}
			if runs(info, n) {
				for _, lit := range literals(info, n) {
					walk(lit.Body)
				}
			}
			if !judged(info, n) {
				return true
			}
			for _, arg := range n.Args {
				if o, is := outerOf(info, arg); is && slices.Contains(all, o) {
					found = append(found, arg)
				}
			}
		}
		return true
	}
	ast.Inspect(body, inspect)
	return found
}

// failure reports whether a condition is true after an error, and whether it is false after one.
func handles(info *types.Info, e ast.Expr) (failed, worked bool) {
	switch e := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			f, w := handles(info, e.X)
			g, x := handles(info, e.Y)
			return f || g, w || x
		}
		is := isNil(info, e.Y) && isError(info.TypeOf(e.X)) || isNil(info, e.X) && isError(info.TypeOf(e.Y))
		return is && e.Op == token.NEQ, is && e.Op == token.EQL
	case *ast.UnaryExpr:
		worked, failed = handles(info, e.X)
		return failed && e.Op == token.NOT, worked && e.Op == token.NOT
	case *ast.CallExpr:
		for _, arg := range e.Args {
			if t := info.TypeOf(arg); t != nil && isError(t) {
				return true, false // errors.Is and others
			}
		}
	}
	return false, false
}

// receivesDone reports whether s receives from the result of a method Done.
func receivesDone(s ast.Stmt) (is bool) {
	ast.Inspect(s, func(n ast.Node) bool {
		if call, calls := n.(*ast.CallExpr); calls && calleeName(call) == "Done" {
			is = true
		}
		return true
	})
	return is
}

// judged reports whether a call is work under the lock, or a request.
func judged(info *types.Info, call *ast.CallExpr) bool {
	if tv := info.Types[call.Fun]; tv.IsType() || tv.IsBuiltin() {
		return false
	}
	name := calleeName(call)
	if slices.Contains([]string{"Unlock", "Detach", "Resign", "Leave", "Close", "Shutdown", "Rollback", "Release", "Stop"},
		name) {
		return false
	}
	f, is := typeutil.Callee(info, call).(*types.Func)
	if !is {
		return true
	}
	if f.Pkg() == nil || f.Pkg().Path() == "context" || f.Pkg().Path() == "log/slog" {
		return false
	}
	if path, own := ours(f.Pkg()); own && path != "fence" && !strings.HasPrefix(path, "fence/") {
		return slices.Contains([]string{"Lock", "RLock", "LockAll", "LockSticky", "Do", "DoNested"}, name)
	}
	return true
}
