// Package uses finds which files of a package use each other. A reader of a file has to read the
// files that it uses. If these lead back to it, the reader has to read all of them together.
package uses

import (
	"fmt"
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
)

// Files contains, for each file of a package, the other files that it uses, with the names by which
// it uses them, in order. A file uses another file if it contains the name of a type, function,
// variable, constant or method that the other file declares.
type Files map[string]map[string][]string

func (u Files) names() []string { return slices.Sorted(maps.Keys(u)) }

// Uses returns the number of uses.
func (u Files) Uses() (n int) {
	for _, of := range u {
		n += len(of)
	}
	return n
}

// Pairs returns the pairs of files that use each other, in order.
func (u Files) Pairs() (pairs [][2]string) {
	for _, a := range u.names() {
		for _, b := range slices.Sorted(maps.Keys(u[a])) {
			if a < b && u[b][a] != nil {
				pairs = append(pairs, [2]string{a, b})
			}
		}
	}
	return pairs
}

// Against returns the number of uses that break the best layering it finds. A layering is an order
// of the files in which each file uses only later files. Against begins with two orders: by name,
// and by the number of files that a file leads to, which is a layering if there is one. It moves
// one file at a time to its best place until no move reduces this number.
func (u Files) Against() int {
	reach := u.reach()
	byReach := slices.SortedStableFunc(slices.Values(u.names()), func(a, b string) int {
		return len(reach[b]) - len(reach[a])
	})
	return min(u.improve(u.names()), u.improve(byReach))
}

// improve returns the number of uses that break the order after the moves.
func (u Files) improve(order []string) (least int) {
	for improved := true; improved; {
		improved = false
		for _, file := range u.names() {
			at := slices.Index(order, file)
			others := slices.Delete(slices.Clone(order), at, at+1)
			// costs[i] is the number of uses that break the layering if the file is moved to place i,
			// minus that number at place 0.
			costs := make([]int, len(order))
			for i, other := range others {
				costs[i+1] = costs[i] + u.one(file, other) - u.one(other, file)
			}
			if best := slices.Index(costs, slices.Min(costs)); costs[best] < costs[at] {
				order, improved = slices.Insert(others, best, file), true
			}
		}
	}
	for i, later := range order {
		for _, earlier := range order[:i] {
			least += u.one(later, earlier)
		}
	}
	return least
}

func (u Files) one(a, b string) int {
	if u[a][b] == nil {
		return 0
	}
	return 1
}

// reach returns the files to which each file leads, directly or through others, and itself.
func (u Files) reach() map[string]map[string]bool {
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
	return reach
}

// Knot returns the largest strongly connected component: a set of files in which each file uses all
// others, directly or through other files of the set.
func (u Files) Knot() (largest []string) {
	reach := u.reach()
	for _, a := range u.names() {
		knot := slices.DeleteFunc(u.names(), func(b string) bool { return !reach[a][b] || !reach[b][a] })
		if len(knot) > len(largest) {
			largest = knot
		}
	}
	return largest
}

// Of returns the uses in the packages that the patterns of go list match, in the directory root.
// The key of a package is its directory, relative to that of its module, which is "" for the
// module's own. Tests are left out.
func Of(root string, patterns ...string) (map[string]Files, error) {
	found := map[string]Files{}
	err := load(root, patterns, func(dir string, p *loaded) { found[dir] = p.uses() })
	return found, err
}

// loaded is a type-checked package.
type loaded struct {
	set   *token.FileSet
	pkg   *types.Package
	files []*ast.File
	info  *types.Info
}

// load calls each with all packages that the patterns match.
func load(root string, patterns []string, each func(dir string, p *loaded)) error {
	command := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t" +
		"{{.Dir}}\t{{if .Module}}{{.Module.Dir}}{{end}}\t{{.DepOnly}}\t{{join .GoFiles \" \"}}"}, patterns...)...)
	command.Dir, command.Stderr = root, os.Stderr
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	exports, ours := map[string]string{}, [][]string{}
	for line := range strings.Lines(string(out)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if exports[cells[0]] = cells[1]; cells[4] == "false" {
			ours = append(ours, cells)
		}
	}
	set := token.NewFileSet()
	from := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, cells := range ours {
		p := &loaded{set: set, info: &types.Info{Uses: map[*ast.Ident]types.Object{}}}
		for _, name := range strings.Fields(cells[5]) {
			file, err := parser.ParseFile(set, filepath.Join(cells[2], name), nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			p.files = append(p.files, file)
		}
		dir, err := filepath.Rel(cells[3], cells[2])
		if err != nil {
			return err
		}
		if dir = filepath.ToSlash(dir); dir == "." {
			dir = ""
		}
		if p.pkg, err = (&types.Config{Importer: from}).Check(cells[0], set, p.files, p.info); err != nil {
			return err
		}
		each(dir, p)
	}
	return nil
}

// file returns the name of the file of a place.
func (p *loaded) file(at token.Pos) string { return filepath.Base(p.set.Position(at).Filename) }

func (p *loaded) uses() Files {
	u, receivers := Files{}, map[*ast.Ident]bool{}
	for _, file := range p.files {
		u[p.file(file.Pos())] = map[string][]string{}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				ast.Inspect(f.Recv, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						receivers[id] = true
					}
					return true
				})
			}
		}
	}
	for id, object := range p.info.Uses {
		method, ok := object.(*types.Func)
		if object.Pkg() != p.pkg || receivers[id] ||
			object.Parent() != p.pkg.Scope() && (!ok || method.Signature().Recv() == nil) {
			continue
		}
		a, b := p.file(id.Pos()), p.file(object.Pos())
		if at, known := slices.BinarySearch(u[a][b], id.Name); a != b && !known {
			u[a][b] = slices.Insert(u[a][b], at, id.Name)
		}
	}
	return u
}
