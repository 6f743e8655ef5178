package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// This file decides which statements refuse, drop or try again.

// kind is why a list of statements is a rare path.
type kind string

const (
	refusal kind = "refusal" // it makes an error, such as that a limit is reached
	limit   kind = "limit"   // it turns away, since a number is above a bound or there is no room
	lost    kind = "lost"    // it drops a message, or does not wait for room or for news
	retry   kind = "retry"   // it tries again, or waits before it does
	late    kind = "late"    // it has waited for too long
)

var (
	failing  = regexp.MustCompile(`^(Err|err)[A-Z]`)                         // a variable
	failure  = regexp.MustCompile(`^(Err|err)[A-Z]|(Error|Refusal)$`)        // a type
	refusing = regexp.MustCompile(`^(Err|err)[A-Z]|(Error|Refusal)$|^refus`) // a function
	logging  = regexp.MustCompile(`^(?i)(debug|info|warn|error|log)$`)
	dropping = regexp.MustCompile(`(?i)^(drop|lost|lose|discard|refuse|reject|forget|shed|overflow|miss)`)
	retrying = regexp.MustCompile(`(?i)^(retry|again|backoff|pause|redial|repeat|postpone|requeue|sleep)`)
	// bound is what a number is compared with, or what is asked for room.
	bound = regexp.MustCompile(`(?i)^(most|limit|full|room|take|allow|admit|spend|enough|fits|exceeds)$|` +
		`^max|(Max|Most|Limit|Limits|Budget|Bytes|Room)$|^too[A-Z]`)
)

// kindOf returns the first statement of a list that itself refuses, drops or tries again, or nil.
// A refusal comes before the others, since a list that drops often also returns an error.
func kindOf(body []ast.Stmt) (kind, ast.Stmt) {
	for _, s := range body {
		if isRefused(s) {
			return refusal, s
		}
	}
	for _, s := range body {
		for _, name := range calls(s) {
			switch {
			case dropping.MatchString(name):
				return lost, s
			case retrying.MatchString(name):
				return retry, s
			}
		}
	}
	return "", nil
}

// isRefused reports whether a statement returns, keeps, sends or passes on an error that begins
// in it.
func isRefused(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ReturnStmt:
		return slices.ContainsFunc(s.Results, isRefusal)
	case *ast.AssignStmt:
		return slices.ContainsFunc(s.Rhs, isRefusal)
	case *ast.SendStmt:
		return isRefusal(s.Value)
	case *ast.ExprStmt:
		call, is := s.X.(*ast.CallExpr)
		return is && !logging.MatchString(called(call.Fun)) && slices.ContainsFunc(call.Args, isRefusal)
	}
	return false
}

// isRefusal reports whether an expression is an error that begins here, or contains one. An error
// that wraps another one is passed on, and began elsewhere.
func isRefusal(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident, *ast.SelectorExpr:
		return failing.MatchString(called(x))
	case *ast.UnaryExpr:
		return x.Op == token.AND && isRefusal(x.X)
	case *ast.KeyValueExpr:
		return isRefusal(x.Value)
	case *ast.CompositeLit:
		return x.Type != nil && failure.MatchString(called(x.Type)) || slices.ContainsFunc(x.Elts, isRefusal)
	case *ast.CallExpr:
		return isMade(x)
	}
	return false
}

// isMade reports whether a call makes an error.
func isMade(x *ast.CallExpr) bool {
	name := called(x.Fun)
	switch {
	case name == "Is" || name == "As" || name == "AsType" || name == "Or":
		return false // it only compares or selects errors
	case name == "Error" && !qualified(x.Fun, "status"):
		return false // the text of an error, or a line of a log
	case name == "Err" || name == "Cause":
		return contextual(x)
	case slices.ContainsFunc(x.Args, isRefusal):
		return true
	case wraps(x):
		return false
	case name == "Errorf" || name == "Error" || name == "New" && qualified(x.Fun, "errors"):
		return true
	}
	return refusing.MatchString(name)
}

// contextual reports whether a call returns why a context has ended.
func contextual(x *ast.CallExpr) bool {
	if len(x.Args) > 0 {
		return qualified(x.Fun, "context")
	}
	s, is := x.Fun.(*ast.SelectorExpr)
	return is && strings.HasSuffix(strings.ToLower(called(s.X)), "ctx")
}

// wraps reports whether a call has an error of another call as an argument.
func wraps(x *ast.CallExpr) bool {
	return slices.ContainsFunc(x.Args, func(a ast.Expr) bool {
		id, is := a.(*ast.Ident)
		return is && (id.Name == "err" || id.Name == "cause")
	})
}

func qualified(x ast.Expr, by string) bool {
	s, is := x.(*ast.SelectorExpr)
	return is && called(s.X) == by
}

// called returns the last name of an expression.
func called(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.CallExpr:
		return called(x.Fun)
	case *ast.IndexExpr:
		return called(x.X)
	case *ast.IndexListExpr:
		return called(x.X)
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// calls returns the names of what a statement calls or counts.
func calls(s ast.Stmt) (names []string) {
	var all []ast.Expr
	switch s := s.(type) {
	case *ast.ExprStmt:
		all = append(all, s.X)
	case *ast.IncDecStmt:
		return []string{called(s.X)}
	case *ast.ReturnStmt:
		all = s.Results
	case *ast.AssignStmt:
		if s.Tok == token.ADD_ASSIGN {
			return []string{called(s.Lhs[0])}
		}
		if called(s.Lhs[0]) == "_" {
			all = s.Rhs
		}
	}
	for _, x := range all {
		if call, is := x.(*ast.CallExpr); is {
			names = append(names, called(call.Fun))
		}
	}
	return names
}

// bounds reports whether a condition compares a number with a bound, or asks for room.
func bounds(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return bounds(x.X)
	case *ast.UnaryExpr:
		return bounds(x.X)
	case *ast.CallExpr:
		return bound.MatchString(called(x.Fun))
	case *ast.BinaryExpr:
		switch x.Op {
		case token.LAND, token.LOR:
			return bounds(x.X) || bounds(x.Y)
		case token.GTR, token.GEQ, token.LSS, token.LEQ, token.EQL, token.NEQ:
			return bounding(x.X) || bounding(x.Y)
		}
	}
	return false
}

// bounding reports whether an operand of a comparison is a bound, such as maxFrames or
// 2*maxFrames.
func bounding(x ast.Expr) bool {
	if sum, is := x.(*ast.BinaryExpr); is {
		return bounding(sum.X) || bounding(sum.Y)
	}
	return bound.MatchString(called(x))
}

// leaves reports whether a list ends what its function or loop does.
func leaves(body []ast.Stmt) bool {
	if len(body) == 0 {
		return false
	}
	switch body[len(body)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return false
}

// carries reports whether a select sends something that is more than a signal.
func carries(n *ast.SelectStmt) bool {
	return slices.ContainsFunc(n.Body.List, func(s ast.Stmt) bool {
		send, is := s.(*ast.CommClause).Comm.(*ast.SendStmt)
		if !is {
			return false
		}
		literal, is := send.Value.(*ast.CompositeLit)
		if !is {
			return true
		}
		_, signal := literal.Type.(*ast.StructType)
		return !signal
	})
}

// timer reports whether a select receives the time of a timer.
func timer(comm ast.Stmt) bool {
	receive, is := comm.(*ast.ExprStmt)
	if !is {
		return false
	}
	from, is := receive.X.(*ast.UnaryExpr)
	if !is || from.Op != token.ARROW {
		return false
	}
	switch called(from.X) {
	case "After", "C", "idle", "passed", "timeout", "deadline":
		return true
	}
	return false
}
