package rules

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

const (
	mortisePath  = "github.com/mortise-lock/mortise"
	lockerPath   = mortisePath + "/locker"
	stripePath   = mortisePath + "/stripe"
	electionPath = mortisePath + "/election"
	fencePath    = mortisePath + "/fence"
)

// ours returns the path of a package below mortise, "" for mortise itself, and false for all other
// packages.
func ours(pkg *types.Package) (path string, is bool) {
	if pkg == nil {
		return "", false
	}
	path, is = strings.CutPrefix(pkg.Path()+"/", mortisePath+"/")
	return strings.TrimSuffix(path, "/"), is
}

// isNamed reports whether t is the type of a package, or an alias of it.
func isNamed(t types.Type, path, name string) bool {
	n, is := types.Unalias(t).(*types.Named)
	return is && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == path && n.Obj().Name() == name
}

// isHandle reports whether a value of type t is one holder's handle of a lock.
func isHandle(t types.Type) bool {
	if p, is := types.Unalias(t).(*types.Pointer); is {
		return isNamed(p.Elem(), mortisePath, "Lock") || isNamed(p.Elem(), electionPath, "Leadership")
	}
	return isNamed(t, lockerPath, "Lock") || isNamed(t, stripePath, "Locks")
}

func isToken(t types.Type) bool   { return isNamed(t, lockerPath, "Token") }
func isContext(t types.Type) bool { return isNamed(t, "context", "Context") }
func isError(t types.Type) bool   { return types.Identical(t, types.Universe.Lookup("error").Type()) }

// endingMethods are the methods of handles that give the lock up, and keepingMethods those that
// leave it with its holder.
var (
	endingMethods  = [...]string{"Unlock", "UnlockSoon", "Detach", "Resign"}
	keepingMethods = [...]string{"Key", "Token", "Err", "Beat", "Done", "Wanted", "Context", "Regain", "Downgrade",
		"Put", "SetValue", "Upgrade", "Proclaim"}
)

// requests are the functions of mortise that return a handle. Upgrade is not among them, because
// the Unlock of the lock below ends the upgrade, too.
var requests = [...]string{"Lock", "RLock", "TryLock", "LockAll", "Acquire", "LockSticky", "Resume",
	"At", "Any", "TryAny", "All", "Campaign"}

func ends(method string) bool  { return slices.Contains(endingMethods[:], method) }
func keeps(method string) bool { return slices.Contains(keepingMethods[:], method) }

// acquires returns the index of the handle among the results of a call that acquires a lock. The
// callee is a function of mortise, or the method of an interface that Node or Session has, too.
func acquires(info *types.Info, call *ast.CallExpr) (result int, is bool) {
	f, is := typeutil.Callee(info, call).(*types.Func)
	if !is {
		return 0, false
	}
	results, is := info.TypeOf(call).(*types.Tuple)
	if !is || results.Len() < 2 || !isError(results.At(results.Len()-1).Type()) || len(call.Args) == 0 {
		return 0, false
	}
	result = results.Len() - 2
	if !isHandle(results.At(result).Type()) {
		return 0, false
	}
	if _, own := ours(f.Pkg()); own {
		return result, slices.Contains(requests[:], f.Name())
	}
	return result, ofNode(f)
}

// ofNode reports whether f is the method of an interface, and Node or Session has the same method.
func ofNode(f *types.Func) bool {
	recv := f.Signature().Recv()
	if recv == nil || !types.IsInterface(recv.Type()) {
		return false
	}
	results := f.Signature().Results()
	lock, is := types.Unalias(results.At(0).Type()).(*types.Pointer)
	if !is || !isNamed(lock.Elem(), mortisePath, "Lock") || !slices.Contains(requests[:], f.Name()) {
		return false
	}
	scope := types.Unalias(lock.Elem()).(*types.Named).Obj().Pkg().Scope()
	for _, name := range []string{"Node", "Session"} {
		if holder := scope.Lookup(name); holder != nil {
			m, _, _ := types.LookupFieldOrMethod(types.NewPointer(holder.Type()), false, holder.Pkg(), f.Name())
			if m, is := m.(*types.Func); is && types.Identical(m.Signature(), f.Signature()) {
				return true
			}
		}
	}
	return false
}

// runs reports whether a call runs its function literals under a lock that it acquires with its
// first argument. Besides the functions of mortise, it is each method Do whose function takes a
// token.
func runs(info *types.Info, call *ast.CallExpr) bool {
	f, is := typeutil.Callee(info, call).(*types.Func)
	if !is || len(call.Args) < 2 || !isContext(info.TypeOf(call.Args[0])) {
		return false
	}
	path, own := ours(f.Pkg())
	switch {
	case own && path == "" || own && path == "locker" || own && path == "flight":
		return f.Name() == "Do" || f.Name() == "DoNested"
	case own && (path == "keep" || path == "election" || path == "tick" || path == "shard"):
		return f.Name() == "Run"
	case f.Name() == "Do" && f.Signature().Recv() != nil:
		last, is := info.TypeOf(call.Args[len(call.Args)-1]).(*types.Signature)
		return is && last.Params().Len() == 2 && isContext(last.Params().At(0).Type()) &&
			isToken(last.Params().At(1).Type())
	}
	return false
}

// literals returns the function literals that a call for which runs is true runs under its lock.
// They are arguments, or the field Run of an argument.
func literals(info *types.Info, call *ast.CallExpr) (all []*ast.FuncLit) {
	for _, arg := range call.Args[1:] {
		if composite, is := ast.Unparen(arg).(*ast.CompositeLit); is {
			for _, e := range composite.Elts {
				if field, is := e.(*ast.KeyValueExpr); is && isIdent(field.Key, "Run") {
					arg = field.Value
				}
			}
		}
		if lit, is := ast.Unparen(arg).(*ast.FuncLit); is {
			kind, is := info.TypeOf(lit).(*types.Signature)
			if is && kind.Params().Len() > 0 && isContext(kind.Params().At(0).Type()) {
				all = append(all, lit)
			}
		}
	}
	return all
}

func isIdent(e ast.Expr, name string) bool {
	id, is := e.(*ast.Ident)
	return is && id.Name == name
}

// isNil reports whether e is the predeclared nil.
func isNil(info *types.Info, e ast.Expr) bool {
	id, is := ast.Unparen(e).(*ast.Ident)
	return is && info.Uses[id] == types.Universe.Lookup("nil")
}

// variable returns the variable that e names, or nil.
func variable(info *types.Info, e ast.Expr) *types.Var {
	if id, is := ast.Unparen(e).(*ast.Ident); is {
		v, _ := info.ObjectOf(id).(*types.Var)
		return v
	}
	return nil
}

// methodOf returns the name of the method that call calls on the variable v, or "".
func methodOf(info *types.Info, call *ast.CallExpr, v *types.Var) string {
	if s, is := ast.Unparen(call.Fun).(*ast.SelectorExpr); is && v != nil && variable(info, s.X) == v {
		return s.Sel.Name
	}
	return ""
}
