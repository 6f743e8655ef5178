package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// Op is the kind of a mutation.
type op string

const (
	opDrop    op = "drop"    // a call, a deferred call or an assignment to a field does not happen
	opSwap    op = "swap"    // two neighboring statements change places
	opNegate  op = "negate"  // a condition means the opposite
	opOperand op = "operand" // another value of the same type is used
	opSkip    op = "skip"    // a branch is never taken
)

var ops = [...]op{opDrop, opSwap, opNegate, opOperand, opSkip}

// point is one mutation: insertions into the text of a file that change the code only while the
// number of the point is switched on.
type point struct {
	id, area, dir, file, fun string
	line, last               int // of the file
	op                       op
	edit                     string
	n                        int // the number by which the built code knows it, from 1
	begin, end               int // the bytes of the file between which the insertions lie
	before, after            string
}

// String describes the point on one line.
func (p *point) String() string {
	return fmt.Sprintf("%s %s:%d %s: %s: %s", p.id, p.file, p.line, p.fun, p.op, p.edit)
}

// finder collects the points of one file.
type finder struct {
	*checked
	set   *token.FileSet
	file  *ast.File
	name  string
	text  []byte
	decl  *ast.FuncDecl
	found []*point
	seen  map[string]int
}

// points returns all points of a file.
func (c *checked) points(set *token.FileSet, file *ast.File) []*point {
	name := set.Position(file.Pos()).Filename
	f := &finder{checked: c, set: set, file: file, name: name, text: c.texts[name], seen: map[string]int{}}
	for _, decl := range file.Decls {
		if decl, is := decl.(*ast.FuncDecl); is && decl.Body != nil {
			f.decl = decl
			f.walk(decl.Body)
		}
	}
	return f.found
}

func (f *finder) offset(pos token.Pos) int { return f.set.Position(pos).Offset }

func (f *finder) source(from, to ast.Node) string {
	return string(f.text[f.offset(from.Pos()):f.offset(to.End())])
}

// short returns the source of a node on one line, for people.
func (f *finder) short(n ast.Node) string {
	line := strings.Join(strings.Fields(f.source(n, n)), " ")
	if len(line) > 70 {
		line = line[:67] + "..."
	}
	return line
}

func (f *finder) function() string {
	name := f.decl.Name.Name
	if f.decl.Recv != nil && len(f.decl.Recv.List) == 1 {
		t := f.decl.Recv.List[0].Type
		if star, is := t.(*ast.StarExpr); is {
			t = star.X
		}
		name = strings.Split(f.short(t), "[")[0] + "." + name
	}
	return name
}

// add adds a point around the nodes from and to. In before and after, N stands for the number.
func (f *finder) add(op op, from, to ast.Node, before, after, edit string) {
	key := strings.Join([]string{f.name, f.function(), string(op), f.source(from, to), edit}, "\x00")
	f.seen[key]++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", key, f.seen[key]))
	f.found = append(f.found, &point{id: hex.EncodeToString(sum[:4]), file: f.name, fun: f.function(),
		line: f.set.Position(from.Pos()).Line, last: f.set.Position(to.End()).Line, op: op, edit: edit,
		begin: f.offset(from.Pos()), end: f.offset(to.End()), before: before, after: after})
}

func (f *finder) walk(body ast.Node) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			f.list(n.List)
		case *ast.CaseClause:
			f.list(n.Body)
			f.clause(n.Body, n.List)
		case *ast.CommClause:
			f.list(n.Body)
			f.clause(n.Body, nil)
		case *ast.IfStmt:
			f.condition(n.Cond)
			f.branch(n)
		case *ast.ForStmt:
			if n.Cond != nil {
				f.condition(n.Cond)
			}
		case *ast.ReturnStmt:
			for _, x := range n.Results {
				f.condition(x)
				f.operand(x, n)
			}
		case *ast.AssignStmt:
			for _, x := range n.Rhs {
				f.condition(x)
				f.operand(x, n)
			}
		case *ast.CallExpr:
			if f.isText(n) {
				return false // what is logged or only read by people is not the subject
			}
			f.call(n)
		case *ast.BinaryExpr:
			f.operand(n.X, n)
			f.operand(n.Y, n)
		case *ast.KeyValueExpr:
			f.operand(n.Value, n)
		}
		return true
	})
}

// list adds dropped and swapped statements of a block.
func (f *finder) list(list []ast.Stmt) {
	for i, s := range list {
		if f.droppable(s) {
			f.add(opDrop, s, s, "if !mutated(N) { ", " }", "drop "+f.short(s))
		}
		if i == 0 {
			continue
		}
		a, b := list[i-1], s
		if f.droppable(a) && f.droppable(b) && !deferred(a) && !deferred(b) &&
			(f.calls(a) || f.calls(b)) && !f.alike(a, b) {
			f.add(opSwap, a, b, "if mutated(N) { "+f.source(b, b)+"\n"+f.source(a, a)+" } else { ", " }",
				"swap "+f.short(a)+" and "+f.short(b))
		}
	}
}

// droppable reports whether a statement has an effect beyond its function and declares nothing.
func (f *finder) droppable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, is := s.X.(*ast.CallExpr)
		return is && !f.isText(call) && !f.isPanic(call) && !f.isMutex(call)
	case *ast.DeferStmt:
		return !f.isText(s.Call) && !f.isMutex(s.Call)
	case *ast.GoStmt, *ast.SendStmt:
		return true
	case *ast.IncDecStmt:
		_, local := s.X.(*ast.Ident)
		return !local
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return false
		}
		for _, x := range s.Lhs {
			if _, local := x.(*ast.Ident); local {
				return false
			}
		}
		return true
	}
	return false
}

// alike reports whether two statements call the same function, or functions of the same package.
// Such calls are rows of a list, as in the checks of a configuration, and their order means
// nothing.
func (f *finder) alike(a, b ast.Stmt) bool {
	x, first := a.(*ast.ExprStmt)
	y, second := b.(*ast.ExprStmt)
	if !first || !second {
		return f.source(a, a) == f.source(b, b)
	}
	p, first := x.X.(*ast.CallExpr)
	q, second := y.X.(*ast.CallExpr)
	if !first || !second {
		return false
	}
	m, n := f.callee(p), f.callee(q)
	same := m != nil && n != nil && m.Pkg() == n.Pkg() && m.Pkg() != f.pkg
	return same || f.source(p.Fun, p.Fun) == f.source(q.Fun, q.Fun)
}

func deferred(s ast.Stmt) bool {
	_, is := s.(*ast.DeferStmt)
	return is
}

func (f *finder) calls(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ExprStmt, *ast.GoStmt, *ast.SendStmt:
		return true
	}
	return false
}

// condition adds the negation of a comparison. "err != nil" is left out: every test catches it.
func (f *finder) condition(x ast.Expr) {
	if paren, is := x.(*ast.ParenExpr); is {
		f.condition(paren.X)
		return
	}
	b, is := x.(*ast.BinaryExpr)
	if !is {
		return
	}
	switch b.Op {
	case token.LAND, token.LOR:
		f.condition(b.X)
		f.condition(b.Y)
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		if id, is := b.X.(*ast.Ident); is && id.Name == "err" {
			return
		}
		f.add(opNegate, b, b, "((", ") != mutated(N))", "negate "+f.short(b))
	}
}

func (f *finder) branch(n *ast.IfStmt) {
	if f.onlyText(n.Body.List) {
		return
	}
	f.add(opSkip, n.Cond, n.Cond, "(", ") && !mutated(N)", "never if "+f.short(n.Cond))
}

func (f *finder) clause(body []ast.Stmt, cases []ast.Expr) {
	if len(body) == 0 || f.onlyText(body) {
		return
	}
	if last, is := body[len(body)-1].(*ast.BranchStmt); is && last.Tok == token.FALLTHROUGH {
		return
	}
	of := "default"
	if len(cases) > 0 {
		of = f.short(cases[0])
	}
	f.add(opSkip, body[0], body[len(body)-1], "if !mutated(N) { ", " }", "never case "+of+": "+f.short(body[0]))
}

// call adds wrong arguments.
func (f *finder) call(n *ast.CallExpr) {
	if tv := f.info.Types[n.Fun]; tv.IsType() || tv.IsBuiltin() {
		return
	}
	for _, x := range n.Args {
		f.operand(x, n)
	}
}

// operand adds other values of the same type in the place of a variable or field.
func (f *finder) operand(x ast.Expr, user ast.Node) {
	tv, known := f.info.Types[x]
	if !known || tv.Value != nil || tv.Type == nil || !tv.IsValue() {
		return
	}
	if basic, is := tv.Type.(*types.Basic); is && basic.Info()&types.IsUntyped != 0 {
		return
	}
	if types.Identical(tv.Type, types.Universe.Lookup("error").Type()) {
		return
	}
	for _, other := range f.others(x, tv.Type) {
		f.add(opOperand, x, x, "mutatedPick(N, ", ", "+other+")", other+" for "+f.short(x)+" in "+f.short(user))
	}
}

// others returns other expressions of the type: sibling fields for a field, and variables of the
// function for a variable.
func (f *finder) others(x ast.Expr, t types.Type) (all []string) {
	switch x := x.(type) {
	case *ast.SelectorExpr:
		s := f.info.Selections[x]
		if s == nil || s.Kind() != types.FieldVal || len(s.Index()) != 1 {
			return nil
		}
		if _, simple := x.X.(*ast.Ident); !simple {
			if inner, is := x.X.(*ast.SelectorExpr); !is || f.info.Selections[inner] == nil {
				return nil
			}
		}
		of := s.Recv().Underlying()
		if pointer, is := of.(*types.Pointer); is {
			of = pointer.Elem().Underlying()
		}
		fields, is := of.(*types.Struct)
		if !is {
			return nil
		}
		for i := range fields.NumFields() {
			field := fields.Field(i)
			if field.Name() != x.Sel.Name && types.Identical(field.Type(), t) &&
				(field.Exported() || field.Pkg() == f.pkg) {
				all = append(all, f.short(x.X)+"."+field.Name())
			}
		}
	case *ast.Ident:
		object, is := f.info.Uses[x].(*types.Var)
		if !is || object.IsField() {
			return nil
		}
		for scope := f.pkg.Scope().Innermost(x.Pos()); scope != nil && scope != f.pkg.Scope(); scope = scope.Parent() {
			for _, name := range scope.Names() {
				other, is := scope.Lookup(name).(*types.Var)
				if !is || name == x.Name || name == "_" || other.Pos() >= x.Pos() || !types.Identical(other.Type(), t) {
					continue
				}
				if _, visible := f.pkg.Scope().Innermost(x.Pos()).LookupParent(name, x.Pos()); visible == other {
					all = append(all, name)
				}
			}
		}
	}
	return all
}
