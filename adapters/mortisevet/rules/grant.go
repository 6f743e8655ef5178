package rules

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// grant is a call in a function that acquires a lock.
type grant struct {
	call *ast.CallExpr
	stmt ast.Node   // the node of the control flow graph that has the call
	lock *types.Var // a variable of the function; nil if the handle is dropped
	err  *types.Var // nil if the error is dropped
	all  bool       // the error is dropped
}

// grants returns the calls of f, outside of the function literals in it, that acquire a lock. It
// leaves out those whose handle leaves f at once, as one that is returned or assigned to a field.
func grants(info *types.Info, f *function) (all []grant) {
	add := func(stmt ast.Node, left []ast.Expr, right ast.Expr) {
		call, is := ast.Unparen(right).(*ast.CallExpr)
		if !is {
			return
		}
		result, is := acquires(info, call)
		if !is {
			return
		}
		g := grant{call: call, stmt: stmt, all: true}
		if left != nil {
			last := left[len(left)-1]
			g.all = isIdent(last, "_")
			g.err = variable(info, last)
			if !isIdent(left[result], "_") {
				g.lock = variable(info, left[result])
				if g.lock == nil || !f.declares(g.lock) || f.shares(info, g.lock, stmt.Pos()) {
					return
				}
			}
		}
		all = append(all, g)
	}
	inspectOwn(f.body, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.ExprStmt:
			add(n, nil, n.X)
		case *ast.AssignStmt:
			if len(n.Rhs) == 1 && len(n.Lhs) > 1 {
				add(n, n.Lhs, n.Rhs[0])
			}
		case *ast.ValueSpec:
			if len(n.Values) == 1 && len(n.Names) > 1 {
				var left []ast.Expr
				for _, name := range n.Names {
					left = append(left, name)
				}
				add(n, left, n.Values[0])
			}
		}
	})
	return all
}

// inspectOwn calls visit for each node of a function's body outside of the function literals in it.
func inspectOwn(body ast.Node, visit func(ast.Node)) {
	ast.Inspect(body, func(n ast.Node) bool {
		if _, is := n.(*ast.FuncLit); is || n == nil {
			return false
		}
		visit(n)
		return true
	})
}

// declares reports whether v is a variable of f itself, not of a function around it or the package.
func (f *function) declares(v *types.Var) bool {
	return f.node.Pos() <= v.Pos() && v.Pos() < f.node.End() && !v.IsField()
}

// shares reports whether f gives other code access to v before the position at: by its address, or
// by a function literal that does more than to read the lock.
func (f *function) shares(info *types.Info, v *types.Var, at token.Pos) (found bool) {
	for _, u := range usesOf(info, f.body, v) {
		if u.at < at && (u.literal && u.what > keeping || u.address) {
			return true
		}
	}
	return false
}

// What is done with the variable of a lock. The order is from the least to the most.
type what int

const (
	keeping   what = iota // the lock stays with its holder, in this variable
	replacing             // another value is assigned
	ending                // Unlock or another method that gives it up
	leaving               // the handle is passed, stored, returned, sent, or its address is taken
)

type use struct {
	at      token.Pos
	what    what
	call    *ast.CallExpr // of a method of the lock, or nil
	literal bool          // it is in a function literal
	address bool          // the address is taken
}

// usesOf returns all uses of v in a node, in the order of the source.
func usesOf(info *types.Info, root ast.Node, v *types.Var) (all []use) {
	var stack []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		if id, is := n.(*ast.Ident); is && v != nil && info.Uses[id] == v {
			u := useOf(info, stack)
			u.at = id.Pos()
			u.literal = slices.ContainsFunc(stack[1:], func(n ast.Node) bool { _, is := n.(*ast.FuncLit); return is })
			all = append(all, u)
		}
		return true
	})
	return all
}

// useOf classifies the use of the identifier on top of the stack of nodes.
func useOf(info *types.Info, stack []ast.Node) use {
	id := stack[len(stack)-1].(ast.Expr)
	parent := func(i int) ast.Node {
		if len(stack) <= i {
			return nil
		}
		return stack[len(stack)-1-i]
	}
	switch p := parent(1).(type) {
	case *ast.SelectorExpr:
		call, is := parent(2).(*ast.CallExpr)
		switch {
		case !is || call.Fun != p:
		case ends(p.Sel.Name):
			return use{what: ending, call: call}
		case p.Sel.Name == "Token" && givenAway(call, parent(3)):
		case keeps(p.Sel.Name):
			return use{what: keeping, call: call}
		}
	case *ast.BinaryExpr:
		if p.Op == token.EQL || p.Op == token.NEQ {
			return use{what: keeping}
		}
	case *ast.CallExpr:
		if tv := info.Types[p.Fun]; tv.IsBuiltin() && isIdent(p.Fun, "len") {
			return use{what: keeping}
		}
	case *ast.AssignStmt:
		if slices.Contains(p.Lhs, id) {
			return use{what: replacing}
		}
		if at := slices.Index(p.Rhs, id); len(p.Lhs) == len(p.Rhs) && isIdent(p.Lhs[at], "_") {
			return use{what: keeping}
		}
	case *ast.UnaryExpr:
		return use{what: leaving, address: p.Op == token.AND}
	}
	return use{what: leaving}
}

// givenAway reports whether the token that call returns leaves the function as the result or
// through a channel: another caller can take the hold over with it, by Node.Resume.
func givenAway(call *ast.CallExpr, parent ast.Node) bool {
	switch p := parent.(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.SendStmt:
		return p.Value == call
	case *ast.AssignStmt:
		at := slices.Index(p.Rhs, ast.Expr(call))
		_, local := p.Lhs[at].(*ast.Ident)
		return !local
	case *ast.CompositeLit, *ast.KeyValueExpr:
		return true
	}
	return false
}

// demands returns the value of a field in the request of a call that acquires a lock, and whether
// the request is a literal, so that its fields are known. A call without a request has none.
func (g *grant) demands(info *types.Info, field string) (value ast.Expr, known bool) {
	for _, arg := range g.call.Args[1:] {
		t := info.TypeOf(arg)
		if !isNamed(t, mortisePath, "Request") && !isNamed(t, mortisePath, "ResumeOptions") &&
			!isNamed(t, mortisePath, "StickyOptions") {
			if _, param := types.Unalias(t).(*types.TypeParam); param {
				return nil, false
			}
			continue
		}
		literal, is := ast.Unparen(arg).(*ast.CompositeLit)
		if !is {
			return nil, false
		}
		for _, e := range literal.Elts {
			pair, is := e.(*ast.KeyValueExpr)
			if !is {
				return nil, false
			}
			if isIdent(pair.Key, field) {
				return pair.Value, true
			}
		}
	}
	return nil, true
}

// exclusive reports whether the lock is known to be an exclusive one.
func (g *grant) exclusive(info *types.Info) bool {
	f := calleeName(g.call)
	if f == "RLock" || f == "Resume" || f == "Campaign" {
		return false
	}
	for _, field := range []string{"Mode", "Shared"} {
		if value, known := g.demands(info, field); value != nil || !known {
			return false
		}
	}
	return true
}

func calleeName(call *ast.CallExpr) string {
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}
