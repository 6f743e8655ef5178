package rules

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/cfg"
	"golang.org/x/tools/go/types/typeutil"
)

// fact is what a path knows about a condition that stands in several places of a function. So "if
// shared { lock }" and a later "if shared { unlock }" are taken together. Facts exclude paths, and
// add none.
type fact struct {
	value bool
	at    token.Pos // where the condition was tested, or the variable set
}

// conditions are those of a function.
type conditions struct {
	info *types.Info
	tags map[*ast.CaseClause]ast.Expr // the tag of its switch
	seen map[string]int               // how often each condition stands in the function
	of   map[string][]types.Object    // the variables in each condition
}

func conditionsOf(info *types.Info, body *ast.BlockStmt) *conditions {
	c := &conditions{info: info, tags: map[*ast.CaseClause]ast.Expr{}, seen: map[string]int{},
		of: map[string][]types.Object{}}
	inspectOwn(body, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.IfStmt:
			c.count(n.Cond)
		case *ast.ForStmt:
			c.count(n.Cond)
		case *ast.SwitchStmt:
			for _, s := range n.Body.List {
				clause := s.(*ast.CaseClause)
				c.tags[clause] = n.Tag
				for _, e := range clause.List {
					c.count(tagged(n.Tag, e))
				}
			}
		}
	})
	return c
}

// tagged returns the condition of a case.
func tagged(tag, e ast.Expr) ast.Expr {
	if tag == nil {
		return e
	}
	return &ast.BinaryExpr{X: tag, OpPos: e.Pos(), Op: token.EQL, Y: e}
}

func (c *conditions) count(e ast.Expr) {
	switch e := e.(type) {
	case nil:
	case *ast.ParenExpr:
		c.count(e.X)
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			c.count(e.X)
			return
		}
		c.seen[c.key(e)]++
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			c.count(e.X)
			c.count(e.Y)
			return
		}
		c.seen[c.key(e)]++
	default:
		c.seen[c.key(e)]++
	}
}

// key returns a text that is the same for the same condition of the same variables. That of x != y
// is that of x == y.
func (c *conditions) key(e ast.Expr) string {
	if b, is := e.(*ast.BinaryExpr); is && b.Op == token.NEQ {
		e = &ast.BinaryExpr{X: b.X, Op: token.EQL, Y: b.Y}
	}
	text := types.ExprString(e)
	var objects []types.Object
	ast.Inspect(e, func(n ast.Node) bool {
		if id, is := n.(*ast.Ident); is {
			if o := c.info.ObjectOf(id); o != nil {
				objects = append(objects, o)
				text += fmt.Sprintf(" %s@%d", o.Name(), o.Pos())
			}
		}
		return true
	})
	c.of[text] = objects
	return text
}

// condition returns the condition at the end of a block that has two successors, or nil for that of
// a range, a select or a switch of types.
func (c *conditions) condition(b *cfg.Block) ast.Expr {
	if len(b.Succs) != 2 || len(b.Nodes) == 0 {
		return nil
	}
	e, is := b.Nodes[len(b.Nodes)-1].(ast.Expr)
	if !is {
		return nil
	}
	switch to := b.Succs[0]; s := to.Stmt.(type) {
	case *ast.IfStmt:
		if s.Cond == e {
			return e
		}
	case *ast.ForStmt:
		if s.Cond == e {
			return e
		}
	case *ast.CaseClause:
		if slices.Contains(s.List, e) && to.Kind == cfg.KindSwitchCaseBody {
			return tagged(c.tags[s], e)
		}
	}
	return nil
}

// truth returns 1 if the condition is true on the path, -1 if it is false, and 0 if neither is
// known.
func (w *walk) truth(e ast.Expr, p *path) int {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return w.truth(e.X, p)
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return -w.truth(e.X, p)
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND:
			return min(w.truth(e.X, p), w.truth(e.Y, p))
		case token.LOR:
			return max(w.truth(e.X, p), w.truth(e.Y, p))
		}
	}
	if v := w.conditions.info.Types[e].Value; v != nil && v.Kind() == constant.Bool {
		return sign(constant.BoolVal(v))
	}
	if told, holds := w.tells(e, true, p); told && p.phase == held {
		return sign(holds)
	}
	if f, is := p.facts[w.conditions.key(e)]; is && f.at != e.Pos() {
		return sign(f.value) * polarity(e)
	}
	return 0
}

func sign(b bool) int {
	if b {
		return 1
	}
	return -1
}

// polarity is -1 for x != y, whose key is that of x == y.
func polarity(e ast.Expr) int {
	if b, is := e.(*ast.BinaryExpr); is && b.Op == token.NEQ {
		return -1
	}
	return 1
}

// tells reports whether the value of a condition without && and || tells if the lock is held, and
// whether it then is.
func (w *walk) tells(e ast.Expr, value bool, p *path) (told, holds bool) {
	info, g := w.conditions.info, w.grant
	if v, failed := failure(info, e, value); v != nil && v == g.err {
		return p.errs, !failed
	}
	b, is := e.(*ast.BinaryExpr)
	if !is || b.Op != token.EQL && b.Op != token.NEQ || g.lock == nil {
		return false, false
	}
	if isNil(info, b.Y) && variable(info, b.X) == g.lock || isNil(info, b.X) && variable(info, b.Y) == g.lock {
		return true, value == (b.Op == token.NEQ)
	}
	return false, false
}

// learn records that a condition has a value on the path.
func (w *walk) learn(e ast.Expr, value bool, p *path) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		w.learn(e.X, value, p)
		return
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			w.learn(e.X, !value, p)
			return
		}
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			neutral := sign(e.Op == token.LAND) // a side with this truth leaves the value to the other side
			x, y := w.truth(e.X, p), w.truth(e.Y, p)
			if all := value == (e.Op == token.LAND); all || y == neutral {
				w.learn(e.X, value, p)
			}
			if all := value == (e.Op == token.LAND); all || x == neutral {
				w.learn(e.Y, value, p)
			}
			return
		}
	}
	if told, holds := w.tells(e, value, p); told && p.phase != free {
		p.phase = free
		if holds {
			p.phase = held
		}
	}
	if key := w.conditions.key(e); w.conditions.seen[key] > 1 {
		p.set(key, fact{value == (polarity(e) > 0), e.Pos()})
	}
	if v, failed := failure(w.conditions.info, e, value); v != nil {
		w.conditions.of[failedKey(v)] = []types.Object{v}
		p.set(failedKey(v), fact{failed, v.Pos()})
	}
}

func failedKey(v *types.Var) string { return fmt.Sprintf("failed %s@%d", v.Name(), v.Pos()) }

// failed reports whether the error v is known not to be nil.
func (p *path) failed(v *types.Var) bool { return p.facts[failedKey(v)].value }

// failure returns the error of which the value of a condition without && and || tells whether it is
// nil, and whether it then is not. It returns nil if the condition tells nothing of an error.
func failure(info *types.Info, e ast.Expr, value bool) (v *types.Var, failed bool) {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		switch {
		case e.Op != token.EQL && e.Op != token.NEQ:
		case isNil(info, e.Y):
			v = variable(info, e.X)
		case isNil(info, e.X):
			v = variable(info, e.Y)
		case e.Op == token.EQL && value: // err == io.EOF
			v = variable(info, e.X)
			return ofError(v), true
		}
		return ofError(v), value == (e.Op == token.NEQ)
	case *ast.CallExpr: // errors.Is and others are false for a nil error
		if f, is := typeutil.Callee(info, e).(*types.Func); is && value && len(e.Args) > 0 &&
			f.Pkg() != nil && f.Pkg().Path() == "errors" {
			return ofError(variable(info, e.Args[0])), true
		}
	}
	return nil, false
}

// ofError returns v if it is an error, and otherwise nil.
func ofError(v *types.Var) *types.Var {
	if v == nil || !isError(v.Type()) {
		return nil
	}
	return v
}

// set records a fact. The facts of other paths stay as they are.
func (p *path) set(key string, f fact) {
	p.facts = maps.Clone(p.facts)
	if p.facts == nil {
		p.facts = map[string]fact{}
	}
	p.facts[key] = f
}

// forget removes the facts about the variables that a node assigns, and records which of them it
// sets to true or false.
func (w *walk) forget(n ast.Node, p *path) {
	c := w.conditions
	for _, a := range assigned(c.info, n) {
		if a.v == w.grant.err && n != w.grant.stmt {
			p.errs = false
		}
		for key := range p.facts {
			if slices.Contains(c.of[key], types.Object(a.v)) {
				p.facts = maps.Clone(p.facts)
				delete(p.facts, key)
			}
		}
		if a.value == nil {
			continue
		}
		if v := c.info.Types[a.value].Value; v != nil && v.Kind() == constant.Bool {
			if key := c.key(a.name); c.seen[key] > 0 {
				p.set(key, fact{constant.BoolVal(v), a.name.Pos()})
			}
		}
	}
}

// assignment is one variable of an assignment, with its value if there is one value for each.
type assignment struct {
	name  *ast.Ident
	v     *types.Var
	value ast.Expr
}

// assigned returns the variables that a node assigns outside of function literals.
func assigned(info *types.Info, n ast.Node) (all []assignment) {
	add := func(e, value ast.Expr) {
		if id, is := e.(*ast.Ident); is {
			if v := variable(info, id); v != nil {
				all = append(all, assignment{id, v, value})
			}
		}
	}
	one := func(values []ast.Expr, i, of int) ast.Expr {
		if len(values) != of {
			return nil
		}
		return values[i]
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, e := range n.Lhs {
			add(e, one(n.Rhs, i, len(n.Lhs)))
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			add(name, one(n.Values, i, len(n.Names)))
		}
	case *ast.IncDecStmt:
		add(n.X, nil)
	case *ast.RangeStmt: // at the beginning of its body
		add(n.Key, nil)
		add(n.Value, nil)
	}
	return all
}

// text returns the facts of a path in a fixed order.
func (p *path) text() string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(p.facts)) {
		fmt.Fprintf(&b, "%s=%v@%d;", key, p.facts[key].value, p.facts[key].at)
	}
	return b.String()
}
