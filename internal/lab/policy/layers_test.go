package policy

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A value of the type uses contains, for each file of a package, the other files that it uses. A
// file uses another file if it contains the name of a type, function, variable, constant or method
// that the other file declares.
type uses map[string]map[string]bool

func (u uses) files() []string { return slices.Sorted(maps.Keys(u)) }

func (u uses) mutual() (pairs int) {
	for a := range u {
		for b := range u[a] {
			if a < b && u[b][a] {
				pairs++
			}
		}
	}
	return pairs
}

// A layering is an order of the files in which each file uses only later files. The method against
// returns the number of uses that break the best layering it finds. It moves one file at a time to
// its best place until no move reduces this number.
func (u uses) against() (least int) {
	order := u.files()
	for improved := true; improved; {
		improved = false
		for _, file := range u.files() {
			at := slices.Index(order, file)
			others := slices.Delete(slices.Clone(order), at, at+1)
			// costs[i] is the number of uses that break the layering if the file is moved to place i,
			// minus that number at place 0.
			costs := make([]int, len(order))
			for i, other := range others {
				costs[i+1] = costs[i] + one(u[file][other]) - one(u[other][file])
			}
			if best := slices.Index(costs, slices.Min(costs)); costs[best] < costs[at] {
				order, improved = slices.Insert(others, best, file), true
			}
		}
	}
	for i, later := range order {
		for _, earlier := range order[:i] {
			least += one(u[later][earlier])
		}
	}
	return least
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// knot returns the largest strongly connected component: a set of files in which each file uses all
// others, directly or through other files of the set. A reader of one of these files has to read
// all of them.
func (u uses) knot() (largest []string) {
	reach := map[string]map[string]bool{}
	for a := range u {
		reach[a] = map[string]bool{a: true}
		for next := []string{a}; len(next) > 0; next = next[1:] {
			for b := range u[next[0]] {
				if !reach[a][b] {
					reach[a][b] = true
					next = append(next, b)
				}
			}
		}
	}
	for _, a := range u.files() {
		knot := slices.DeleteFunc(u.files(), func(b string) bool { return !reach[a][b] || !reach[b][a] })
		if len(knot) > len(largest) {
			largest = knot
		}
	}
	return largest
}

func usesOf(t *testing.T, set *token.FileSet, from types.Importer, path string, files []*ast.File) uses {
	t.Helper()
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, err := (&types.Config{Importer: from}).Check(path, set, files, info)
	if err != nil {
		t.Fatal(err)
	}
	u := uses{}
	for _, file := range files {
		u[set.Position(file.Pos()).Filename] = map[string]bool{}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				ast.Inspect(f.Recv, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						delete(info.Uses, id)
					}
					return true
				})
			}
		}
	}
	for id, object := range info.Uses {
		method, ok := object.(*types.Func)
		if object.Pkg() == pkg && (object.Parent() == pkg.Scope() || ok && method.Signature().Recv() != nil) {
			if a, b := set.Position(id.Pos()).Filename, set.Position(object.Pos()).Filename; a != b {
				u[a][b] = true
			}
		}
	}
	return u
}

func usesByPackage(t *testing.T) map[string]uses {
	t.Helper()
	command := exec.Command("go", "list", "-export", "-deps", "-f",
		"{{.ImportPath}}\t{{.Export}}\t{{.Dir}}\t{{if .Module}}{{.Module.Main}}{{end}}\t{{join .GoFiles \" \"}}",
		"./...")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports, ours := map[string]string{}, [][]string{}
	for line := range strings.Lines(string(out)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		exports[cells[0]] = cells[1]
		if cells[3] == "true" {
			ours = append(ours, cells)
		}
	}
	set, found := token.NewFileSet(), map[string]uses{}
	from := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, cells := range ours {
		var files []*ast.File
		for _, name := range strings.Fields(cells[4]) {
			file, err := parser.ParseFile(set, filepath.Join(cells[2], name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		found[strings.TrimPrefix(strings.TrimPrefix(cells[0], module), "/")] = usesOf(t, set, from, cells[0], files)
	}
	return found
}

const (
	maxAgainst     = 328 // uses that break the layering, in all packages together
	maxRootAgainst = 7   // uses that break the layering of the root package, which all readers see
	maxKnot        = 12  // files in a knot
)

// knots contains the packages whose largest knot has more than maxKnot files, with the size of
// that knot. A size may only decrease.
var knots = map[string]int{
	"cluster": 22, "cluster/founding": 22, "cmd/mortise": 35, "console": 11, "internal/instance": 18,
	"internal/lab/mutants": 13, "internal/lab/sim": 28, "lockfsm": 29, "raftlog": 13, "transport": 44,
}

// The compiler prevents cycles between packages. This test limits cycles between files.
func TestUsesFollowTheLayering(t *testing.T) {
	found := usesByPackage(t)
	if len(found) < 30 {
		t.Fatalf("found only %d packages: the rule would pass because it sees nothing", len(found))
	}
	all, pairs, against := 0, 0, 0
	for _, pkg := range slices.Sorted(maps.Keys(found)) {
		u := found[pkg]
		count := 0
		for _, of := range u {
			count += len(of)
		}
		a, knot := u.against(), u.knot()
		all, pairs, against = all+count, pairs+u.mutual(), against+a
		if a > 0 {
			t.Logf("%-28s %3d files, %3d uses, %2d against the layering, %2d pairs that use each other; %2d in a knot",
				"/"+pkg, len(u), count, a, u.mutual(), len(knot))
		}
		if most := max(maxKnot, knots[pkg]); len(knot) > most {
			t.Errorf("/%s: %d files lead to each other, at most %d may: %s", pkg, len(knot), most, knot)
		}
	}
	t.Logf("of %d uses between files %d run against the layering; %d pairs use each other", all, against, pairs)
	if a := found[""].against(); a > maxRootAgainst {
		t.Errorf("%d uses between the root's files run against the layering, at most %d may", a, maxRootAgainst)
	}
	if against > maxAgainst {
		t.Errorf("%d uses run against the layering, at most %d may: have the lower file take a value instead",
			against, maxAgainst)
	}
}

// a and b use each other, by a type and by a method; c and d close a longer cycle.
func TestLayeringIsSeen(t *testing.T) {
	set := token.NewFileSet()
	var files []*ast.File
	for name, text := range map[string]string{
		"a.go": `package p; type A struct{}; func (a A) use() { a.work(); D() }`,
		"b.go": `package p; func (A) work() { var _ A }`,
		"c.go": `package p; func C() { A{}.use() }`,
		"d.go": `package p; func D() { C() }`,
		"e.go": `package p; func E() { D() }; func (A) other() {}`,
	} {
		file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	u := usesOf(t, set, nil, "p", files)
	if u.mutual() != 1 || u.against() != 2 || !slices.Equal(u.knot(), []string{"a.go", "b.go", "c.go", "d.go"}) {
		t.Errorf("%d pairs use each other, %d uses are against the layering, the knot is %s",
			u.mutual(), u.against(), u.knot())
	}
}
