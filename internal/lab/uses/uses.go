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
// of the files in which each file uses only later files. Against moves one file at a time to its
// best place until no move reduces this number.
func (u Files) Against() (least int) {
	order := u.names()
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

// Knot returns the largest strongly connected component: a set of files in which each file uses all
// others, directly or through other files of the set.
func (u Files) Knot() (largest []string) {
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
	command := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t" +
		"{{.Dir}}\t{{if .Module}}{{.Module.Dir}}{{end}}\t{{.DepOnly}}\t{{join .GoFiles \" \"}}"}, patterns...)...)
	command.Dir, command.Stderr = root, os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports, ours := map[string]string{}, [][]string{}
	for line := range strings.Lines(string(out)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if exports[cells[0]] = cells[1]; cells[4] == "false" {
			ours = append(ours, cells)
		}
	}
	set, found := token.NewFileSet(), map[string]Files{}
	from := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, cells := range ours {
		var files []*ast.File
		for _, name := range strings.Fields(cells[5]) {
			file, err := parser.ParseFile(set, filepath.Join(cells[2], name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files = append(files, file)
		}
		dir, err := filepath.Rel(cells[3], cells[2])
		if err != nil {
			return nil, err
		}
		if dir = filepath.ToSlash(dir); dir == "." {
			dir = ""
		}
		if found[dir], err = in(set, from, cells[0], files); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// in returns the uses in one package.
func in(set *token.FileSet, from types.Importer, path string, files []*ast.File) (Files, error) {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, err := (&types.Config{Importer: from}).Check(path, set, files, info)
	if err != nil {
		return nil, err
	}
	name := func(at token.Pos) string { return filepath.Base(set.Position(at).Filename) }
	u := Files{}
	for _, file := range files {
		u[name(file.Pos())] = map[string][]string{}
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
			a, b := name(id.Pos()), name(object.Pos())
			if at, known := slices.BinarySearch(u[a][b], id.Name); a != b && !known {
				u[a][b] = slices.Insert(u[a][b], at, id.Name)
			}
		}
	}
	return u, nil
}
