package rules

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// CopiedLock returns the analyzer that finds a copied mortise.Lock.
func CopiedLock() *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "copiedlock",
		URL:  page,
		Doc: `find a copied mortise.Lock

A mortise.Lock must not be copied: the copy does not learn that the lock has ended, and its Unlock
counts twice. The rule reports a Lock, or a struct or array that contains one by value, that is
assigned, passed, returned, sent, captured as the value of a range, put into a composite literal or
converted, and a parameter, result or receiver of such a type. Pointers are right. Test files are
judged, too.`,
		Requires: []*analysis.Analyzer{inspect.Analyzer},
		Run: func(pass *analysis.Pass) (any, error) {
			nodes := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
			nodes.Preorder([]ast.Node{(*ast.AssignStmt)(nil), (*ast.ValueSpec)(nil), (*ast.CallExpr)(nil),
				(*ast.CompositeLit)(nil), (*ast.ReturnStmt)(nil), (*ast.SendStmt)(nil), (*ast.RangeStmt)(nil),
				(*ast.FuncType)(nil), (*ast.FuncDecl)(nil)}, func(n ast.Node) { copies(pass, n) })
			return nil, nil
		},
	}
}

// copies reports what n copies.
func copies(pass *analysis.Pass, n ast.Node) {
	values := func(does string, list ...ast.Expr) {
		for _, e := range list {
			if pair, is := e.(*ast.KeyValueExpr); is {
				e = pair.Value
			}
			if copied(pass.TypesInfo, e) {
				pass.ReportRangef(e, "%s a mortise.Lock (%s): use a pointer", does, shortType(pass, pass.TypesInfo.TypeOf(e)))
			}
		}
	}
	fields := func(does string, list *ast.FieldList) {
		if list == nil {
			return
		}
		for _, f := range list.List {
			if t := pass.TypesInfo.TypeOf(f.Type); contains(t, nil) {
				pass.ReportRangef(f.Type, "%s a mortise.Lock (%s): use a pointer", does, shortType(pass, t))
			}
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, e := range n.Rhs {
			if len(n.Lhs) != len(n.Rhs) || !isIdent(n.Lhs[i], "_") {
				values("the assignment copies", e)
			}
		}
	case *ast.ValueSpec:
		values("the declaration copies", n.Values...)
	case *ast.CompositeLit:
		values("the literal copies", n.Elts...)
	case *ast.ReturnStmt:
		values("the return copies", n.Results...)
	case *ast.SendStmt:
		values("the send copies", n.Value)
	case *ast.CallExpr:
		if tv := pass.TypesInfo.Types[n.Fun]; tv.IsBuiltin() && !isIdent(n.Fun, "append") {
			return // len, new and others copy nothing
		} else if tv.IsType() && contains(tv.Type, nil) {
			return // a conversion is reported where its value is used
		}
		values("the call copies", n.Args...)
	case *ast.RangeStmt:
		for _, e := range []ast.Expr{n.Key, n.Value} {
			if e == nil || isIdent(e, "_") {
				continue
			}
			if t := pass.TypesInfo.TypeOf(e); contains(t, nil) {
				pass.ReportRangef(e, "the range copies a mortise.Lock (%s): use a pointer", shortType(pass, t))
			}
		}
	case *ast.FuncDecl:
		fields("the receiver copies", n.Recv)
	case *ast.FuncType:
		fields("the parameter copies", n.Params)
		fields("the result copies", n.Results)
	}
}

// copied reports whether the value of e is that of a Lock that exists already. A composite literal
// and the result of a call are new.
func copied(info *types.Info, e ast.Expr) bool {
	switch x := ast.Unparen(e).(type) {
	case *ast.CompositeLit:
		return false
	case *ast.CallExpr:
		if !info.Types[x.Fun].IsType() || len(x.Args) != 1 {
			return false
		}
		return contains(info.TypeOf(e), nil) && copied(info, x.Args[0])
	case *ast.UnaryExpr:
		if x.Op == token.ARROW { // reported where it is sent
			return false
		}
	}
	tv, is := info.Types[ast.Unparen(e)]
	if id, named := ast.Unparen(e).(*ast.Ident); !is && named {
		v, _ := info.ObjectOf(id).(*types.Var)
		return v != nil && contains(v.Type(), nil)
	}
	return is && tv.IsValue() && contains(tv.Type, nil)
}

// contains reports whether a value of type t contains a mortise.Lock, not only a pointer to one.
func contains(t types.Type, seen []types.Type) bool {
	if t == nil {
		return false
	}
	if isNamed(t, mortisePath, "Lock") {
		return true
	}
	for _, s := range seen {
		if s == t {
			return false
		}
	}
	seen = append(seen, t)
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for i := range u.NumFields() {
			if contains(u.Field(i).Type(), seen) {
				return true
			}
		}
	case *types.Array:
		return contains(u.Elem(), seen)
	case *types.Tuple:
		for i := range u.Len() {
			if contains(u.At(i).Type(), seen) {
				return true
			}
		}
	}
	return false
}

func shortType(pass *analysis.Pass, t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == pass.Pkg {
			return ""
		}
		return p.Name()
	})
}
