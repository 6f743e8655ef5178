package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"github.com/mortise-lock/mortise/internal/lab/policy"
)

// point is a list of statements that a campaign must reach, for example the body of a branch.
type point struct {
	file, fun    string
	line, column int // of the statement that makes it a rare path
	kind         kind
	text         string // the condition of the branch on one line, or what else the list belongs to
}

// name identifies a point in the list of exceptions. It does not depend on the line.
func (p point) name() string { return p.file + " " + p.fun + ": " + p.text }

// find returns all points of the shells below root.
func find(root string) (all []point, err error) {
	err = sources(root, func(name, text string) error {
		some, err := pointsOf(name, text)
		all = append(all, some...)
		return err
	})
	return all, err
}

// sources calls do for each file of the shells below root.
func sources(root string, do func(name, text string) error) error {
	for _, shell := range shells {
		files, err := os.ReadDir(filepath.Join(root, shell.dir))
		if err != nil {
			return err
		}
		for _, entry := range files {
			name := entry.Name()
			if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || policy.IsCore(shell.dir, name) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(root, shell.dir, name))
			if err != nil {
				return err
			}
			if err := do(filepath.ToSlash(filepath.Join(shell.dir, name)), string(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

type finder struct {
	set   *token.FileSet
	name  string
	text  string
	fun   string
	loops int // in how many loops of the function the current list is
	found []point
}

func pointsOf(name, text string) ([]point, error) {
	f := &finder{set: token.NewFileSet(), name: name, text: text}
	file, err := parser.ParseFile(f.set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if f.fun = function(decl); decl.Body != nil {
				f.body("end", decl.Type, decl.Body)
			}
		case *ast.GenDecl:
			f.fun = "var"
			ast.Inspect(decl, f.visit)
		}
	}
	return f.found, nil
}

func function(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return decl.Name.Name
	}
	t := decl.Recv.List[0].Type
	if star, is := t.(*ast.StarExpr); is {
		t = star.X
	}
	switch generic := t.(type) {
	case *ast.IndexExpr:
		t = generic.X
	case *ast.IndexListExpr:
		t = generic.X
	}
	if id, is := t.(*ast.Ident); is {
		return id.Name + "." + decl.Name.Name
	}
	return decl.Name.Name
}

// body finds the points of a function or of a literal. One that only makes an error is none: it is
// called where the error begins.
func (f *finder) body(text string, t *ast.FuncType, body *ast.BlockStmt) {
	before := f.loops
	f.loops = 0
	defer func() { f.loops = before }()
	if len(body.List) == 1 && t.Results != nil && len(t.Results.List) == 1 {
		if _, is := body.List[0].(*ast.ReturnStmt); is {
			f.inside(body.List)
			return
		}
	}
	f.list(text, body.List)
}

// list adds a point if the statements refuse, drop or try again themselves, and finds the points
// in the statements inside.
func (f *finder) list(text string, body []ast.Stmt) {
	if k, at := kindOf(body); at != nil {
		f.add(k, text, f.set.Position(at.Pos()))
	}
	f.inside(body)
}

func (f *finder) inside(body []ast.Stmt) {
	for _, s := range body {
		ast.Inspect(s, f.visit)
	}
}

// visit finds the points in the lists of one statement. It returns false where it has visited what
// is inside.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		f.body("func", n.Type, n.Body)
		return false
	case *ast.ForStmt, *ast.RangeStmt:
		f.loop(n)
		return false
	case *ast.BlockStmt:
		f.list("end", n.List)
		return false
	case *ast.IfStmt:
		f.chosen(n)
		return false
	case *ast.CaseClause:
		text, bound := "default", false
		for i, x := range n.List {
			if ast.Inspect(x, f.visit); i == 0 {
				text, bound = "case "+f.source(x), bounds(x)
			}
		}
		f.branch(text, bound, n.Body)
		return false
	case *ast.SelectStmt:
		for _, clause := range n.Body.List {
			f.communication(n, clause.(*ast.CommClause))
		}
		return false
	}
	return true
}

func (f *finder) loop(n ast.Node) {
	f.loops++
	defer func() { f.loops-- }()
	switch n := n.(type) {
	case *ast.ForStmt:
		text := "for"
		if n.Cond != nil {
			text += " " + f.source(n.Cond)
		}
		f.list(text, n.Body.List)
	case *ast.RangeStmt:
		ast.Inspect(n.X, f.visit)
		f.list("range "+f.source(n.X), n.Body.List)
	}
}

func (f *finder) chosen(n *ast.IfStmt) {
	for _, before := range []ast.Node{n.Init, n.Cond} {
		if before != nil && before != ast.Stmt(nil) {
			ast.Inspect(before, f.visit)
		}
	}
	f.branch("if "+f.source(n.Cond), bounds(n.Cond), n.Body.List)
	switch other := n.Else.(type) {
	case *ast.BlockStmt:
		f.branch("else of "+f.source(n.Cond), false, other.List)
	case *ast.IfStmt:
		f.chosen(other)
	}
}

// branch is like list. If the condition is a bound, a branch that leaves is a point.
func (f *finder) branch(text string, bound bool, body []ast.Stmt) {
	if _, at := kindOf(body); at == nil && bound && leaves(body) {
		f.add(limit, text, f.set.Position(body[0].Pos()))
	}
	f.list(text, body)
}

// communication adds a point for a case of a select. A clause without statements is counted at its
// colon.
func (f *finder) communication(all *ast.SelectStmt, n *ast.CommClause) {
	text := "default of a select"
	if n.Comm != nil {
		text = "case " + f.source(n.Comm)
	}
	begin := f.set.Position(n.Colon + 1)
	if len(n.Body) > 0 {
		begin = f.set.Position(n.Body[0].Pos())
	}
	k, at := kindOf(n.Body)
	switch {
	case at != nil:
		f.add(k, text, f.set.Position(at.Pos()))
	case n.Comm == nil && (len(n.Body) > 0 || carries(all)):
		f.add(lost, text, begin)
	case n.Comm != nil && isRefused(n.Comm):
		f.add(refusal, text, begin)
	case n.Comm != nil && timer(n.Comm) && f.loops > 0:
		f.add(retry, text, begin)
	case n.Comm != nil && timer(n.Comm):
		f.add(late, text, begin)
	}
	if n.Comm != nil {
		ast.Inspect(n.Comm, f.visit)
	}
	f.inside(n.Body)
}

// source returns the text of a node on one line, cut to 60 bytes.
func (f *finder) source(n ast.Node) string {
	from, to := f.set.Position(n.Pos()).Offset, f.set.Position(n.End()).Offset
	line := strings.Join(strings.Fields(f.text[from:to]), " ")
	return line[:min(len(line), 60)]
}

func (f *finder) add(k kind, text string, at token.Position) {
	f.found = append(f.found, point{f.name, f.fun, at.Line, at.Column, k, text})
}
