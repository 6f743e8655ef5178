package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

func TestCoreRuleCatches(t *testing.T) {
	for name, code := range map[string]string{
		"goroutine": `package p; func f() { go f() }`,
		"channel":   `package p; func f(c chan int) {}`,
		"receive":   `package p; func f(c C) { <-c }`,
		"select":    `package p; func f() { select {} }`,
		"clock":     `package p; import "time"; func f() { _ = time.Now() }`,
		"random":    `package p; import "math/rand/v2"; var _ = rand.Int`,
		"mutex":     `package p; import "sync"; type t struct{ sync.Mutex }`,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", code, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if len(coreFaults(file)) == 0 {
			t.Errorf("%s: the rule for cores sees nothing in %q", name, code)
		}
	}
}

func TestStateRuleCatches(t *testing.T) {
	for code, want := range map[string]bool{
		`package p; var ErrX = errors.New("x")`:  true,
		`package p; var _ I = t{}`:               true,
		`package p; var names = [...]string{}`:   true,
		`package p; var files embed.FS`:          true,
		`package p; var disk os.FS`:              false,
		`package p; var cache = map[int]int{}`:   false,
		`package p; var count int`:               false,
		`package p; var once = sync.OnceFunc(f)`: false,
		`package p; var list = []string{}`:       false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", code, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		spec := file.Decls[0].(*ast.GenDecl).Specs[0].(*ast.ValueSpec)
		if got := stateless(spec); got != want {
			t.Errorf("stateless(%s) = %v, want %v", code, got, want)
		}
	}
}

const (
	maxFunctionLines = 70
	maxFileLines     = 800
)

func TestFunctionsAndFilesStayReadable(t *testing.T) {
	set, files := sources(t)
	for _, s := range files {
		if s.generated {
			continue
		}
		if s.lines > maxFileLines && !s.test {
			t.Errorf("%s has %d lines, more than %d: is it still one idea?", s.path, s.lines, maxFileLines)
		}
		for _, decl := range s.file.Decls {
			d, ok := decl.(*ast.FuncDecl)
			if !ok || d.Body == nil || s.test || isTable(d.Body) {
				continue
			}
			if lines := set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1; lines > maxFunctionLines {
				t.Errorf("%s: %s has %d lines, more than %d", set.Position(d.Pos()), d.Name.Name, lines,
					maxFunctionLines)
			}
		}
	}
}

// isTable reports whether a function only returns one literal. Such a function may be long.
func isTable(body *ast.BlockStmt) bool {
	if len(body.List) != 1 {
		return false
	}
	r, ok := body.List[0].(*ast.ReturnStmt)
	if !ok || len(r.Results) != 1 {
		return false
	}
	_, ok = r.Results[0].(*ast.CompositeLit)
	return ok
}
