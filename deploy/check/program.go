package check

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Program contains facts about the program in examples/service. The files in deploy must agree with
// these facts.
type Program struct {
	Paths     map[string]bool // the paths that the program serves
	Variables map[string]bool // the variables that the program reads
	Ready     time.Duration   // the time limit of its readiness probe
	End       time.Duration   // the longest time from SIGTERM to the end of the program
	LockPort  int             // the default port for locks
	HTTPPort  int             // the default port for HTTP
}

// closeTime is how long Node.Close may wait for a hanging disk. The comment of Node.Close documents
// this time.
const closeTime = 20 * time.Second

const prefix = "ORDERS_LOCK_"

// ReadProgram reads the facts from the program's source, and the default port and the variables of
// ConfigFromEnv from the library's source.
func ReadProgram(root string) (Program, error) {
	p := Program{Paths: map[string]bool{}, Variables: map[string]bool{}}
	service, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "examples", "service", "main.go"), nil, 0)
	if err != nil {
		return p, err
	}
	library, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "config.go"), nil, 0)
	if err != nil {
		return p, err
	}
	environment, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "config_env.go"), nil, 0)
	if err != nil {
		return p, err
	}
	times := map[string]time.Duration{}
	ast.Inspect(service, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.ValueSpec:
			if d, ok := duration(x.Values); ok {
				times[x.Names[0].Name] = d
			}
		case *ast.CallExpr:
			p.take(x)
		}
		return true
	})
	ast.Inspect(library, func(n ast.Node) bool {
		if x, ok := n.(*ast.ValueSpec); ok && x.Names[0].Name == "defaultPort" {
			p.LockPort, _ = strconv.Atoi(text(x.Values[0]))
		}
		return true
	})
	ast.Inspect(environment, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			p.variable(call)
		}
		return true
	})
	p.Ready = times["readyWithin"]
	p.End = times["drainWithin"] + times["leaveWithin"] + closeTime
	if len(times) < 3 || len(p.Paths) == 0 || len(p.Variables) == 0 || p.LockPort == 0 || p.HTTPPort == 0 {
		return p, fmt.Errorf("this check does not understand the program's source: found %+v and the times %v", p, times)
	}
	return p, nil
}

func (p *Program) take(call *ast.CallExpr) {
	if len(call.Args) == 0 {
		return
	}
	first := text(call.Args[0])
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	switch f.Sel.Name {
	case "Getenv":
		p.Variables[first] = true
	case "HandleFunc":
		_, path, _ := strings.Cut(first, " ")
		p.Paths[path] = true
	case "Or":
		if _, port, ok := strings.Cut(text(call.Args[1]), ":"); ok {
			p.HTTPPort, _ = strconv.Atoi(port)
		}
	}
}

func (p *Program) variable(call *ast.CallExpr) {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	if e, ok := f.X.(*ast.Ident); !ok || e.Name != "e" {
		return
	}
	if name := text(call.Args[0]); name != "" && name == strings.ToUpper(name) {
		p.Variables[prefix+name] = true
	}
}

func text(e ast.Expr) string {
	if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.STRING {
		s, _ := strconv.Unquote(literal.Value)
		return s
	}
	return ""
}

func duration(values []ast.Expr) (time.Duration, bool) {
	if len(values) != 1 {
		return 0, false
	}
	unit, n := values[0], 1
	if product, ok := unit.(*ast.BinaryExpr); ok && product.Op == token.MUL {
		literal, ok := product.X.(*ast.BasicLit)
		if !ok {
			return 0, false
		}
		n, _ = strconv.Atoi(literal.Value)
		unit = product.Y
	}
	s, ok := unit.(*ast.SelectorExpr)
	return time.Duration(n) * time.Second, ok && s.Sel.Name == "Second"
}
