package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mortise-lock/mortise/internal/policy"
)

// shells are the directories whose rare paths a campaign must reach.
var shells = [...]string{"internal/instance", "internal/replica", "internal/queries", "transport", "session/client",
	"session/keeper", "cluster", "cluster/gossip", "cluster/discovery", "raftlog", "raftlog/storage"}

// kind is why a branch is a rare path.
type kind string

const (
	refusal kind = "refusal" // it returns an error of its own, such as that a limit is reached
	lost    kind = "lost"    // it drops a message, or does not wait for room or for news
	retry   kind = "retry"   // it tries again, or waits before it does
)

// point is a branch that a campaign must reach.
type point struct {
	file, fun string
	line      int // of its first statement
	column    int
	kind      kind
	text      string // the condition of the branch on one line
}

// name identifies a point in the list of exceptions. It does not depend on the line.
func (p point) name() string { return p.file + " " + p.fun + ": " + p.text }

// find returns all points of the shells below root.
func find(root string) (all []point, err error) {
	for _, dir := range shells {
		files, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil {
			return nil, err
		}
		for _, entry := range files {
			name := entry.Name()
			if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || policy.IsCore(dir, name) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(root, dir, name))
			if err != nil {
				return nil, err
			}
			some, err := pointsOf(dir+"/"+name, string(text))
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
	}
	return all, nil
}

type finder struct {
	set   *token.FileSet
	name  string
	text  string
	fun   string
	found []point
}

func pointsOf(name, text string) ([]point, error) {
	f := &finder{set: token.NewFileSet(), name: name, text: text}
	file, err := parser.ParseFile(f.set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, decl := range file.Decls {
		if decl, is := decl.(*ast.FuncDecl); is && decl.Body != nil {
			f.fun = function(decl)
			ast.Inspect(decl.Body, f.visit)
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
	if index, is := t.(*ast.IndexExpr); is {
		t = index.X
	}
	if id, is := t.(*ast.Ident); is {
		return id.Name + "." + decl.Name.Name
	}
	return decl.Name.Name
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.branch("if "+f.source(n.Cond), n.Body.List)
		if block, is := n.Else.(*ast.BlockStmt); is {
			f.branch("else of "+f.source(n.Cond), block.List)
		}
	case *ast.CaseClause:
		if len(n.List) == 0 {
			f.branch("default", n.Body)
		} else {
			f.branch("case "+f.source(n.List[0]), n.Body)
		}
	case *ast.SelectStmt:
		for _, clause := range n.Body.List {
			if clause := clause.(*ast.CommClause); clause.Comm == nil && len(clause.Body) > 0 {
				f.add(lost, "default of a select", clause.Body)
			} else if clause.Comm != nil {
				f.branch("case "+f.source(clause.Comm), clause.Body)
			}
		}
	}
	return true
}

// source returns the text of a node on one line, cut to 60 bytes.
func (f *finder) source(n ast.Node) string {
	from, to := f.set.Position(n.Pos()).Offset, f.set.Position(n.End()).Offset
	line := strings.Join(strings.Fields(f.text[from:to]), " ")
	return line[:min(len(line), 60)]
}

func (f *finder) add(k kind, text string, body []ast.Stmt) {
	at := f.set.Position(body[0].Pos())
	f.found = append(f.found, point{f.name, f.fun, at.Line, at.Column, k, text})
}

var (
	dropping = regexp.MustCompile(`(?i)^(drop|lost|lose|discard|refuse|reject|forget|shed|overflow)`)
	retrying = regexp.MustCompile(`(?i)^(retry|again|backoff|back[Oo]ff|pause|redial|repeat|postpone|requeue)`)
)

// branch adds a point if the branch refuses, drops or tries again by itself, not in a branch
// inside.
func (f *finder) branch(text string, body []ast.Stmt) {
	for _, s := range body {
		if result, is := s.(*ast.ReturnStmt); is && slices.ContainsFunc(result.Results, f.isRefusal) {
			f.add(refusal, text, body)
			return
		}
	}
	for _, s := range body {
		var names []string
		switch s := s.(type) {
		case *ast.ExprStmt:
			names = called(s.X)
		case *ast.IncDecStmt:
			names = called(s.X)
		case *ast.ReturnStmt:
			for _, x := range s.Results {
				if _, is := x.(*ast.CallExpr); is {
					names = append(names, called(x)...)
				}
			}
		}
		for _, name := range names {
			switch {
			case dropping.MatchString(name):
				f.add(lost, text, body)
				return
			case retrying.MatchString(name):
				f.add(retry, text, body)
				return
			}
		}
	}
}

// called returns the last names of what is called or counted.
func called(x ast.Expr) []string {
	switch x := x.(type) {
	case *ast.CallExpr:
		return called(x.Fun)
	case *ast.SelectorExpr:
		return []string{x.Sel.Name}
	case *ast.Ident:
		return []string{x.Name}
	}
	return nil
}

var refusing = regexp.MustCompile(`^(Err|err)[A-Z]|Error$|^refus`)

// isRefusal reports whether an expression is an error that begins here. An error that wraps another
// one is passed on, and began elsewhere.
func (f *finder) isRefusal(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return refusing.MatchString(x.Name)
	case *ast.SelectorExpr:
		return refusing.MatchString(x.Sel.Name)
	case *ast.UnaryExpr:
		literal, is := x.X.(*ast.CompositeLit)
		return is && f.isRefusal(literal.Type)
	case *ast.CallExpr:
		name := called(x.Fun)
		if len(name) == 0 {
			return false
		}
		for _, argument := range x.Args {
			if id, is := argument.(*ast.Ident); is && id.Name == "err" {
				return false
			}
		}
		switch f.source(x.Fun) {
		case "fmt.Errorf", "errors.New", "status.Error", "status.Errorf":
			return true
		}
		return refusing.MatchString(name[0])
	}
	return false
}
