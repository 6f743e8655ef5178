package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/types/typeutil"
)

// LockLeak returns the analyzer that finds a lock that some path of the function does not unlock.
func LockLeak() *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "lockleak",
		URL:  page,
		Doc: `find a lock that is not unlocked on some path

A lock stays taken until its Unlock, or as long as its session. The rule reports a call such as
Node.Lock if a path leads from it to a return, or to the same call again, and neither Unlock,
UnlockSoon, Detach nor Resign is called or deferred on it.

A path on which the call has failed holds nothing. A lock that is returned, stored, sent, passed to
a function, or unlocked by a function literal is not reported, nor is one whose token is returned,
nor a path that ends the process or closes the node. A request with MaxHold or MaxIdle ends by
itself: it is reported only if some path of the function unlocks it. Test files are not judged.`,
		Requires: []*analysis.Analyzer{inspect.Analyzer, ctrlflow.Analyzer},
		Run: func(pass *analysis.Pass) (any, error) {
			for _, f := range functions(pass) {
				for _, g := range grants(pass.TypesInfo, &f) {
					if !g.selfEnding(pass.TypesInfo) || f.unlocks(pass.TypesInfo, g.lock) {
						leak(pass, &f, &g)
					}
				}
			}
			return nil, nil
		},
	}
}

func leak(pass *analysis.Pass, f *function, g *grant) {
	found := token.NoPos
	again := false
	complete := f.follow(pass.TypesInfo, g, func(n ast.Node, p *path) bool {
		if p.phase == free {
			return true
		}
		ret, returns := n.(*ast.ReturnStmt)
		for _, u := range usesOf(pass.TypesInfo, n, g.lock) {
			if u.what >= ending || u.what == replacing && u.literal {
				return false
			}
		}
		switch {
		case closesNode(pass.TypesInfo, n):
			return false
		case returns && f.returnsBare(ret, g.lock):
			return false
		case p.phase == held && (returns || n == g.stmt || f.requestsAgain(pass.TypesInfo, n, g)):
			if !found.IsValid() || n.Pos() < found {
				found, again = n.Pos(), !returns
			}
			return false
		}
		return true
	})
	if !complete || !found.IsValid() {
		return
	}
	name := calleeName(g.call)
	where := "the return in line %d is reached"
	if again {
		where = "the request in line %d is made"
	}
	d := analysis.Diagnostic{Pos: g.call.Pos(), End: g.call.End(),
		Message: fmt.Sprintf("the lock of %s is not unlocked on every path: "+where+" while it is held", name,
			pass.Fset.Position(found).Line)}
	if g.lock == nil {
		d.Message = fmt.Sprintf("the lock of %s is dropped, so nothing can unlock it", name)
	}
	d.Related = []analysis.RelatedInformation{{Pos: found, Message: "reached while the lock is held"}}
	pass.Report(d)
}

// selfEnding reports whether the request of g may have a limit that ends the hold.
func (g *grant) selfEnding(info *types.Info) bool {
	for _, field := range []string{"MaxHold", "MaxIdle"} {
		if value, known := g.demands(info, field); value != nil || !known {
			return true
		}
	}
	return false
}

// unlocks reports whether f ends the lock v anywhere.
func (f *function) unlocks(info *types.Info, v *types.Var) bool {
	for _, u := range usesOf(info, f.body, v) {
		if u.what == ending {
			return true
		}
	}
	return false
}

// returnsBare reports whether v is a result of f, and ret returns it without naming it.
func (f *function) returnsBare(ret *ast.ReturnStmt, v *types.Var) bool {
	results := f.kind.Results()
	for i := range results.Len() {
		if v != nil && results.At(i) == v {
			return len(ret.Results) == 0
		}
	}
	return false
}

// requestsAgain reports whether n assigns another lock to the variable of g.
func (f *function) requestsAgain(info *types.Info, n ast.Node, g *grant) bool {
	s, is := n.(*ast.AssignStmt)
	if !is || len(s.Rhs) != 1 || g.lock == nil {
		return false
	}
	call, is := s.Rhs[0].(*ast.CallExpr)
	if !is {
		return false
	}
	result, is := acquires(info, call)
	return is && result < len(s.Lhs) && variable(info, s.Lhs[result]) == g.lock
}

// closesNode reports whether n calls Close of a node at once. Its locks then expire, as after a
// crash.
func closesNode(info *types.Info, n ast.Node) (closes bool) {
	if _, is := n.(*ast.DeferStmt); is {
		return false
	}
	inspectOwn(n, func(n ast.Node) {
		if call, is := n.(*ast.CallExpr); is {
			f, is := typeutil.Callee(info, call).(*types.Func)
			if is && f.Name() == "Close" && f.Pkg() != nil && f.Pkg().Path() == mortisePath {
				if recv := f.Signature().Recv(); recv != nil {
					p, is := types.Unalias(recv.Type()).(*types.Pointer)
					closes = closes || is && isNamed(p.Elem(), mortisePath, "Node")
				}
			}
		}
	})
	return closes
}
