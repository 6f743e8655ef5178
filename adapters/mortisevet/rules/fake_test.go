package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree is the root of the library's source, if this module is in its tree.
const tree = "../../.."

// library returns the root of the library's source. A copy of this module alone has none.
func library(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(tree, "lock.go")); err != nil {
		t.Skip("the library's source is not beside this module")
	}
	return tree
}

// exported returns the exported declarations of a package: functions and methods with their
// signatures, fields and methods of types with their types, and other names with "".
func exported(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	packages, err := parser.ParseDir(token.NewFileSet(), dir, func(f fs.FileInfo) bool {
		return !strings.HasSuffix(f.Name(), "_test.go")
	}, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		for _, file := range p.Files {
			for _, d := range file.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					name := d.Name.Name
					if d.Recv != nil {
						name = types.ExprString(d.Recv.List[0].Type) + "." + name
					}
					if d.Name.IsExported() {
						all[name] = types.ExprString(d.Type)
					}
				case *ast.GenDecl:
					for _, s := range d.Specs {
						declare(all, s)
					}
				}
			}
		}
	}
	return all
}

func declare(all map[string]string, s ast.Spec) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() {
				all[name.Name] = ""
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		all[s.Name.Name] = ""
		var members *ast.FieldList
		switch kind := s.Type.(type) {
		case *ast.StructType:
			members = kind.Fields
		case *ast.InterfaceType:
			members = kind.Methods
		default:
			all[s.Name.Name] = types.ExprString(s.Type)
			return
		}
		for _, m := range members.List {
			for _, name := range m.Names {
				if name.IsExported() {
					all[s.Name.Name+"."+name.Name] = types.ExprString(m.Type)
				}
			}
		}
	}
}

// TestTheFakeIsLikeTheLibrary compares each declaration of the packages in testdata with the
// library, so that the rules are tested with the types that users have.
func TestTheFakeIsLikeTheLibrary(t *testing.T) {
	root := library(t)
	fakes := filepath.Join("testdata", "src", filepath.FromSlash(mortisePath))
	seen := 0
	err := filepath.WalkDir(fakes, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(fakes, dir)
		if err != nil {
			return err
		}
		real := exported(t, filepath.Join(root, rel))
		for name, kind := range exported(t, dir) {
			seen++
			if is, there := real[name]; !there {
				t.Errorf("%s: the library has no %s", rel, name)
			} else if is != kind {
				t.Errorf("%s: %s is\n\t%s, and in the library\n\t%s", rel, name, kind, is)
			}
		}
		return nil
	})
	if err != nil || seen < 80 {
		t.Errorf("only %d declarations were compared: %v", seen, err)
	}
}

// TestEveryMethodOfAHandleIsKnown fails if a handle has a method of which the rules do not know
// whether it ends the lock, or if the rules know a method or a function that does not exist.
func TestEveryMethodOfAHandleIsKnown(t *testing.T) {
	root := library(t)
	known := map[string]bool{}
	for dir, handle := range map[string]string{"": "*Lock.", "election": "*Leadership.", "stripe": "Locks.",
		"locker": "Lock."} {
		for name := range exported(t, filepath.Join(root, dir)) {
			method, is := strings.CutPrefix(name, handle)
			if !is {
				continue
			}
			known[method] = true
			if ends(method) == keeps(method) {
				t.Errorf("%s of package %q: ends is %v and keeps is %v", name, dir, ends(method), keeps(method))
			}
		}
	}
	for _, method := range slices.Concat(endingMethods[:], keepingMethods[:]) {
		if !known[method] {
			t.Errorf("no handle has a method %s", method)
		}
	}

	acquiring := map[string]bool{}
	for _, dir := range []string{"", "election", "stripe", "locker"} {
		for name, kind := range exported(t, filepath.Join(root, dir)) {
			handle := strings.Contains(kind, "*Lock, error)") || strings.Contains(kind, "*mortise.Lock, error)") ||
				strings.Contains(kind, "(Locks, error)") || strings.Contains(kind, "*Leadership, error)") ||
				strings.Contains(kind, "(L, error)")
			_, method, is := strings.Cut(name, ".")
			if !handle || !is || method == "Upgrade" {
				continue
			}
			acquiring[method] = true
			if !slices.Contains(requests[:], method) {
				t.Errorf("%s of package %q returns a lock, and the rules do not know it", name, dir)
			}
		}
	}
	for _, name := range requests {
		if !acquiring[name] {
			t.Errorf("%s returns no lock: %v", name, slices.Sorted(maps.Keys(acquiring)))
		}
	}
}
