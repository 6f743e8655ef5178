package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const sample = `package sample

func (q *queue) put(m message) error {
	if len(q.all) == q.most {
		q.dropped++
		return nil
	}
	if m.size > q.bytes {
		return ErrTooLarge
	}
	if err := q.check(m); err != nil {
		return fmt.Errorf("checking: %w", err)
	}
	select {
	case q.news <- m:
	default:
		q.behind = true
	}
	switch m.kind {
	case retired:
		q.retryLater(m)
	case ended:
		return &EndedError{m}
	case plain:
		q.all = append(q.all, m)
	}
	if q.closed {
		return status.Error(codes.Unavailable, "closed")
	} else {
		q.discard(m)
	}
	select {
	case q.copies <- m:
	default:
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
	for {
		select {
		case <-timer.C:
			continue
		case <-q.ctx.Done():
			return context.Cause(q.ctx)
		}
	}
	if errors.Is(q.err, ErrTooLarge) || q.err == errHeld {
		return nil
	}
	if q.places.Take(1) != nil {
		return nil
	}
	go func() {
		if m.late {
			q.err = errLate
			return
		}
		select {
		case q.done <- errLate:
		case <-time.After(patience):
			q.end()
		}
	}()
	if m.bad {
		q.fail(m, errBad)
	}
	if m.bad {
		return &answer{refusal: &wire.Refusal{}}
	}
	q.log.Warn("it is full", "why", ErrTooLarge, "text", err.Error())
	return errors.Join(err, ErrOther)
}

func closedError() error { return errors.New("closed") }

func (q *queue[A, B]) get() error {
	q.wait()
	return ErrEmpty
}
`

// TestRarePathsAreFound checks which statements of a sample are rare paths, and how their counts
// are read from a profile.
func TestRarePathsAreFound(t *testing.T) {
	points, err := pointsOf("a/sample.go", sample)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range points {
		got = append(got, fmt.Sprintf("%d %s %s", p.line, p.kind, p.name()))
	}
	want := []string{
		"5 lost a/sample.go queue.put: if len(q.all) == q.most",
		"9 refusal a/sample.go queue.put: if m.size > q.bytes",
		"17 lost a/sample.go queue.put: default of a select",
		"21 retry a/sample.go queue.put: case retired",
		"23 refusal a/sample.go queue.put: case ended",
		"28 refusal a/sample.go queue.put: if q.closed",
		"30 lost a/sample.go queue.put: else of q.closed",
		"34 lost a/sample.go queue.put: default of a select",
		"43 retry a/sample.go queue.put: case <-timer.C",
		"45 refusal a/sample.go queue.put: case <-q.ctx.Done()",
		"52 limit a/sample.go queue.put: if q.places.Take(1) != nil",
		"56 refusal a/sample.go queue.put: if m.late",
		"60 refusal a/sample.go queue.put: case q.done <- errLate",
		"62 late a/sample.go queue.put: case <-time.After(patience)",
		"66 refusal a/sample.go queue.put: if m.bad",
		"69 refusal a/sample.go queue.put: if m.bad",
		"72 refusal a/sample.go queue.put: end",
		"79 refusal a/sample.go queue.get: end",
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	all, err := blocks("mode: atomic\n" + module + "a/sample.go:4.26,7.3 2 7\n" + module +
		"a/sample.go:16.9,17.17 1 3\n" + module + "a/sample.go:16.9,17.17 1 4\n" + module + "b/sample.go:4.26,7.3 2 9\n" +
		module + "a/sample.go:34.10,34.10 0 2\n")
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range counts(points, all) {
		if want := map[int]int{5: 7, 17: 7, 34: 2}[points[i].line]; n != want {
			t.Errorf("line %d was reached %d times, want %d", points[i].line, n, want)
		}
	}
	if _, err := blocks(module + "a/sample.go:4,7 2 7\n"); err == nil {
		t.Error("a line that is none is read")
	}
}

// planted are rare paths that TestEachNewPathIsFound puts into the shells. Each %d is a number.
var planted = map[string]kind{
	"if planted%d { return ErrPlanted }":                                           refusal,
	"if planted%d { return fmt.Errorf(\"%%w: full\", ErrPlanted) }":                refusal,
	"if planted%d { return &PlantedError{} }":                                      refusal,
	"if planted%d { x.err = errPlanted; return }":                                  refusal,
	"if planted%d { reply <- errPlanted }":                                         refusal,
	"if planted%d { x.end(ErrPlanted) }":                                           refusal,
	"if planted%d < maxPlanted { return }":                                         limit,
	"if !x.planted%d.Take(1) && x.Take(1) { break }":                               limit,
	"if planted%d { dropped++ }":                                                   lost,
	"if planted%d { x.drop(m) }":                                                   lost,
	"select { case x <- planted%d: default: return }":                              lost,
	"for { if planted%d { x.retryLater() } }":                                      retry,
	"for { select { case <-planted%d.C: x.try() } }":                               retry,
	"select { case <-planted%d.C: x.end() }":                                       late,
	"go func() { for _, x := range y { if planted%d { z.lose(x); continue } } }()": lost,
}

// TestEachNewPathIsFound puts rare paths of each kind at the beginning of each list of statements
// of all shells, and checks that each is found.
func TestEachNewPathIsFound(t *testing.T) {
	n := 0
	err := sources("../../..", func(name, text string) error {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		var edited strings.Builder
		done, want := 0, map[string]kind{}
		for _, at := range lists(set, file) {
			edited.WriteString(text[done:at])
			done = at
			for snippet, k := range planted {
				n++
				want[fmt.Sprintf("planted%d", n)] = k
				fmt.Fprintf(&edited, "\n"+snippet+"\n", n)
			}
		}
		edited.WriteString(text[done:])
		points, err := pointsOf(name, edited.String())
		if err != nil {
			return err
		}
		word := regexp.MustCompile(`planted\d+`)
		lines := strings.Split(edited.String(), "\n")
		for _, p := range points {
			for _, is := range []string{word.FindString(p.text), word.FindString(lines[p.line-1])} {
				// What is late in a loop tries again.
				if want[is] == p.kind || want[is] == late && p.kind == retry {
					delete(want, is)
				}
			}
		}
		for is, k := range want {
			t.Errorf("%s: %d of the planted paths were not found, for example %s, a %s", name, len(want), is, k)
			break
		}
		return nil
	})
	if err != nil || n < 10_000 {
		t.Errorf("%d rare paths were planted: %v", n, err)
	}
}

// lists returns the offsets at which the lists of statements of a file begin, in order.
func lists(set *token.FileSet, file *ast.File) (offsets []int) {
	add := func(at token.Pos) { offsets = append(offsets, set.Position(at).Offset+1) }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			if len(n.List) == 0 || !isClause(n.List[0]) {
				add(n.Lbrace)
			}
		case *ast.CaseClause:
			add(n.Colon)
		case *ast.CommClause:
			add(n.Colon)
		}
		return true
	})
	slices.Sort(offsets)
	return offsets
}

func isClause(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.CaseClause, *ast.CommClause:
		return true
	}
	return false
}

// TestEachErrorIsSeen looks for all errors that begin in the shells in another way, by their names:
// each must be in a list with a point, or be only compared.
func TestEachErrorIsSeen(t *testing.T) {
	n := 0
	err := sources("../../..", func(name, text string) error {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		points, err := pointsOf(name, text)
		if err != nil {
			return err
		}
		var above []ast.Node
		ast.Inspect(file, func(node ast.Node) bool {
			if node == nil {
				above = above[:len(above)-1]
				return true
			}
			if id, is := node.(*ast.Ident); is && begun.MatchString(id.Name) {
				if list := listOf(above); list != nil {
					n++
					if !slices.ContainsFunc(points, func(p point) bool { return in(set, list, p) }) {
						t.Errorf("%s: %s is in no rare path", set.Position(id.Pos()), id.Name)
					}
				}
			}
			above = append(above, node)
			return true
		})
		return nil
	})
	if err != nil || n < 300 {
		t.Errorf("%d errors were found: %v", n, err)
	}
}

// begun matches the names of errors.
var begun = regexp.MustCompile(`^(Err|err)[A-Z]\w*$`)

// listOf returns the innermost list in which a node stands, or nil if the node is only compared,
// called or declared, or is all that its function returns.
func listOf(above []ast.Node) []ast.Stmt {
	for i := len(above) - 1; i > 0; i-- {
		switch n := above[i].(type) {
		case *ast.BinaryExpr, *ast.GenDecl, *ast.Field, *ast.TypeSpec, *ast.ValueSpec:
			return nil
		case *ast.CallExpr:
			switch called(n.Fun) {
			case "Is", "As", "AsType", "Or", "Info", "Debug", "Warn", "warn":
				return nil
			}
		case *ast.CaseClause:
			if i+1 == len(above) || isExpr(above[i+1]) {
				return nil // one of the values with which a switch compares
			}
			return n.Body
		case *ast.RangeStmt:
			if isExpr(above[i+1]) {
				return nil // errors with which a loop compares
			}
		case *ast.CommClause:
			return n.Body
		case *ast.BlockStmt:
			if _, is := above[i-1].(*ast.FuncDecl); is && len(n.List) == 1 {
				return nil
			}
			return n.List
		}
	}
	return nil
}

func isExpr(n ast.Node) bool { _, is := n.(ast.Expr); return is }

// in reports whether a point is of a list.
func in(set *token.FileSet, list []ast.Stmt, p point) bool {
	return slices.ContainsFunc(list, func(s ast.Stmt) bool { return set.Position(s.Pos()).Line == p.line })
}

// TestEachPackageIsAShellOrNot checks that each package of the product is a shell, or stands in
// elsewhere with a reason.
func TestEachPackageIsAShellOrNot(t *testing.T) {
	known := map[string]bool{}
	for _, s := range shells {
		known[s.dir] = true
	}
	for dir := range elsewhere() {
		if known[dir] {
			t.Errorf("%s is both a shell and elsewhere", dir)
		}
		known[dir] = true
	}
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel("../../..", path)
		name = filepath.ToSlash(name)
		if !d.IsDir() {
			return nil
		}
		_, nested := os.Stat(filepath.Join(path, "go.mod"))
		if name != "." && (nested == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" ||
			known[name+"/..."]) {
			return filepath.SkipDir
		}
		files, _ := filepath.Glob(filepath.Join(path, "*.go"))
		files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
		if len(files) > 0 && !known[name] {
			t.Errorf("%s is neither in shells nor in elsewhere of shells.go", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestExceptionsAreOfThisTree checks that each exception names a branch that there is, once.
func TestExceptionsAreOfThisTree(t *testing.T) {
	text, err := os.ReadFile("exceptions.txt")
	if err != nil {
		t.Fatal(err)
	}
	reasons, err := exceptions(string(text))
	if err != nil {
		t.Fatal(err)
	}
	points, err := find("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(points) < 200 {
		t.Errorf("found only %d rare paths", len(points))
	}
	names := map[string]bool{}
	for _, p := range points {
		names[p.name()], names[p.file+" "+p.fun], names[p.file] = true, true, true
	}
	for name := range reasons {
		if !names[name] {
			t.Errorf("exceptions.txt names %q, which is not in the source", name)
		}
	}
	for _, wrong := range []string{"a b: c\n", "a -- \n", "a -- b\na -- b\n"} {
		if _, err := exceptions(wrong); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}
