package main

import (
	"go/ast"
	"go/types"
	"strings"
)

// callee returns the function or method that a call names, or nil.
func (f *finder) callee(call *ast.CallExpr) *types.Func {
	var id *ast.Ident
	switch x := call.Fun.(type) {
	case *ast.Ident:
		id = x
	case *ast.SelectorExpr:
		id = x.Sel
	default:
		return nil
	}
	fun, _ := f.info.Uses[id].(*types.Func)
	return fun
}

// isText reports whether a call only logs or writes a text for people. A mutation of it is not
// effective.
func (f *finder) isText(call *ast.CallExpr) bool {
	fun := f.callee(call)
	if fun == nil {
		return false
	}
	if fun.Pkg() != nil {
		switch path := fun.Pkg().Path(); {
		case path == "log/slog", path == "log", path == "errors" && fun.Name() == "New":
			return true
		case path == "testing" && fun.Name() == "Helper": // it marks the line of a failure
			return true
		case path == "fmt" && !strings.HasPrefix(fun.Name(), "Sscan"):
			return true
		}
	}
	name := strings.ToLower(fun.Name())
	return name == "log" || name == "logf" || strings.HasPrefix(name, "warn") || strings.HasPrefix(name, "debug")
}

func (f *finder) isPanic(call *ast.CallExpr) bool {
	id, is := call.Fun.(*ast.Ident)
	return is && id.Name == "panic"
}

// isMutex reports whether a call locks or unlocks a mutex. Every test catches such a mutation.
func (f *finder) isMutex(call *ast.CallExpr) bool {
	fun := f.callee(call)
	return fun != nil && fun.Pkg() != nil && fun.Pkg().Path() == "sync" && strings.HasSuffix(fun.Name(), "ock")
}

// onlyText reports whether all statements only log.
func (f *finder) onlyText(list []ast.Stmt) bool {
	for _, s := range list {
		x, is := s.(*ast.ExprStmt)
		if !is {
			return false
		}
		if call, is := x.X.(*ast.CallExpr); !is || !f.isText(call) {
			return false
		}
	}
	return true
}
