package policy

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

func isCore(s source) bool { return !s.test && !s.generated && IsCore(s.pkg, path.Base(s.path)) }

// impure lists packages that a core may not import, because they access a clock, random numbers, or
// the world outside the process.
var impure = []string{"os", "net", "math/rand", "math/rand/v2", "crypto/rand", "sync", "sync/atomic", "runtime",
	"io/fs", "log", "context", "unsafe"}

var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

func coreFaults(file *ast.File) map[token.Pos]string {
	faults := map[token.Pos]string{}
	for _, i := range file.Imports {
		if path := strings.Trim(i.Path.Value, `"`); slices.Contains(impure, path) {
			faults[i.Pos()] = "imports " + path
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			faults[n.Pos()] = "starts a goroutine"
		case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
			faults[n.Pos()] = "uses a channel"
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				faults[n.Pos()] = "uses a channel"
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clocks, n.Sel.Name) {
				faults[n.Pos()] = "reads a clock: time." + n.Sel.Name
			}
		}
		return true
	})
	return faults
}

func TestCoresArePure(t *testing.T) {
	set, files := sources(t)
	cores := 0
	for _, s := range files {
		if !isCore(s) {
			continue
		}
		cores++
		for pos, fault := range coreFaults(s.file) {
			t.Errorf("%s: a core %s; take the value as an argument, or do it in the shell", set.Position(pos), fault)
		}
	}
	if cores < 10 {
		t.Fatalf("found only %d files of cores: the rule would pass because it sees nothing", cores)
	}
}

// stateless reports whether a package-level variable is of a kind that never changes: an error, an
// interface assertion, a fixed-size table, or embedded files.
func stateless(spec *ast.ValueSpec) bool {
	if kind, ok := spec.Type.(*ast.SelectorExpr); ok && len(spec.Values) == 0 && kind.Sel.Name == "FS" {
		x, ok := kind.X.(*ast.Ident)
		return ok && x.Name == "embed"
	}
	for i, name := range spec.Names {
		if name.Name == "_" {
			continue
		}
		if len(spec.Values) <= i {
			return false
		}
		switch value := spec.Values[i].(type) {
		case *ast.CallExpr: // errors.New("..."), and other values that are never changed
			call, ok := value.Fun.(*ast.SelectorExpr)
			if !ok {
				return false
			}
			x, ok := call.X.(*ast.Ident)
			if !ok || !slices.Contains(unchanging, x.Name+"."+call.Sel.Name) {
				return false
			}
		case *ast.SelectorExpr: // session.ErrLost
			if !strings.HasPrefix(value.Sel.Name, "Err") {
				return false
			}
		case *ast.CompositeLit: // [...]string{...}: Go has no constants of this type
			array, ok := value.Type.(*ast.ArrayType)
			if !ok || array.Len == nil {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// unchanging are the functions whose results are never changed and are safe for concurrent use.
var unchanging = []string{"errors.New", "fmt.Errorf", "regexp.MustCompile", "strings.NewReplacer"}

var excused = map[string]string{
	"internal/credentials/stretch.go stretched": "a thousand nodes of one process must not stretch one secret " +
		"a thousand times; bounded, and a function of its keys",
}

func TestNoPackageHasState(t *testing.T) {
	set, files := sources(t)
	for _, s := range files {
		if s.test || s.generated {
			continue
		}
		for _, decl := range s.file.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "init" {
				t.Errorf("%s: func init runs unseen; do its work where it is needed", set.Position(d.Pos()))
			}
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.VAR {
				continue
			}
			for _, spec := range d.Specs {
				if v := spec.(*ast.ValueSpec); !stateless(v) && excused[s.path+" "+v.Names[0].Name] == "" {
					t.Errorf("%s: package-level state %s; let a value hold it "+
						"(errors.New, an alias of an Err and fixed-size tables are fine)",
						set.Position(v.Pos()), v.Names[0].Name)
				}
			}
		}
	}
}
