package limits

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/constant"
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

// listed is a package of the root module, as go list describes it.
type listed struct {
	ImportPath, Dir, Export, Name                string
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
	Module                                       *struct{ Main bool }
}

// shipped returns the packages of the module in dir that are part of a program of a user, and a
// function that imports any package.
func shipped(dir string) (ours []listed, from types.Importer, err error) {
	command := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,Name,GoFiles,CgoFiles,"+
		"TestGoFiles,XTestGoFiles,Module", "./...")
	command.Dir, command.Stderr = dir, os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, nil, err
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	exports := map[string]string{}
	for all := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := all.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		exports[p.ImportPath] = p.Export
		if p.Module == nil || !p.Module.Main {
			continue
		}
		local, _ := filepath.Rel(root, p.Dir)
		local = filepath.ToSlash(local)
		if isTool := slices.ContainsFunc(prefixes(local), func(dir string) bool {
			return tools.MatchString(dir) || tools.MatchString(filepath.Base(dir))
		}); !isTool {
			p.Name = strings.TrimPrefix(local, ".")
			ours = append(ours, p)
		}
	}
	return ours, importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	}), nil
}

// prefixes returns a slash-separated path and the directories above it.
func prefixes(path string) (all []string) {
	for path != "." {
		all = append(all, path)
		path = filepath.ToSlash(filepath.Dir(path))
	}
	return all
}

// read is a package with the types of its expressions.
type read struct {
	files []*ast.File
	pkg   *types.Package
	info  types.Info
}

func readTypes(p listed, from types.Importer) (r read, err error) {
	set := token.NewFileSet()
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return r, err
		}
		r.files = append(r.files, file)
	}
	r.info = types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: from}
	r.pkg, err = config.Check(p.ImportPath, set, r.files, &r.info)
	return r, err
}

// bounding returns the names of the constants that bound something: they are an operand of an
// ordering, or of min or max, alone or in an expression, or their names are those of limits.
// Constants of less than two, and those that only go to a timer, are left out.
func (r read) bounding() map[string]bool {
	found := map[string]bool{}
	operand := func(e ast.Expr) {
		ast.Inspect(e, func(n ast.Node) bool {
			if _, inner := n.(*ast.FuncLit); inner {
				return false
			}
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			c, ok := r.info.Uses[id].(*types.Const)
			if ok && c.Pkg() == r.pkg && counts(c.Val()) {
				found[c.Name()] = true
			}
			return true
		})
	}
	for _, file := range r.files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if limitName.MatchString(n.Name) {
					operand(n) // it may be an argument of what compares it
				}
			case *ast.BinaryExpr:
				switch n.Op {
				case token.LSS, token.LEQ, token.GTR, token.GEQ:
					operand(n.X)
					operand(n.Y)
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "min" || id.Name == "max") {
					if _, is := r.info.Uses[id].(*types.Builtin); is {
						for _, arg := range n.Args {
							operand(arg)
						}
					}
				}
			}
			return true
		})
	}
	return found
}

// cut returns the functions that shorten a string: they slice it up to a constant, or up to the
// smaller of its length and something else.
func (r read) cut() map[string]bool {
	found := map[string]bool{}
	for _, file := range r.files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SliceExpr)
				if !ok || s.High == nil {
					return true
				}
				of, is := r.info.Types[s.X].Type.Underlying().(*types.Basic)
				if !is || of.Info()&types.IsString == 0 {
					return true
				}
				ast.Inspect(s.High, func(n ast.Node) bool {
					e, ok := n.(ast.Expr)
					if !ok {
						return true
					}
					if v := r.info.Types[e].Value; v != nil && counts(v) {
						found[f.Name.Name] = true
					}
					if id, ok := n.(*ast.Ident); ok && id.Name == "min" {
						found[f.Name.Name] = true
					}
					return true
				})
				return true
			})
		}
	}
	return found
}

// counts reports whether a value is a number of at least two.
func counts(v constant.Value) bool {
	return (v.Kind() == constant.Int || v.Kind() == constant.Float) &&
		constant.Compare(v, token.GEQ, constant.MakeInt64(2))
}

var contracts = []string{"AtMost", "AtLeast", "Below", "CutTexts"}

// triedIn returns the names that the tests of a package try at a boundary: a function names them
// and calls one of the contracts, or it adds one to them or takes one away.
func triedIn(p listed) (map[string]bool, error) {
	tried := map[string]bool{}
	for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			names, calls := map[string]bool{}, false
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					names[n.Name] = true
				case *ast.SelectorExpr:
					if id, ok := n.X.(*ast.Ident); ok && id.Name == "limits" {
						calls = calls || slices.Contains(contracts, n.Sel.Name)
					}
				case *ast.BinaryExpr:
					one, is := n.Y.(*ast.BasicLit)
					if is && one.Value == "1" && (n.Op == token.ADD || n.Op == token.SUB) {
						ast.Inspect(n.X, func(n ast.Node) bool {
							if id, ok := n.(*ast.Ident); ok {
								tried[id.Name] = true
							}
							return true
						})
					}
				}
				return true
			})
			if calls {
				maps.Copy(tried, names)
			}
		}
	}
	return tried, nil
}

// TestEachBoundIsTried fails if a constant that bounds something is neither tried at its boundary
// by a test of its package, nor listed with a reason.
func TestEachBoundIsTried(t *testing.T) {
	packages, from, err := shipped(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for reason, names := range untried {
		for _, name := range strings.Fields(names) {
			reasons[name] = reason
		}
	}
	all, trials := 0, 0
	for _, p := range packages {
		r, err := readTypes(p, from)
		if err != nil {
			t.Fatal(err)
		}
		for name := range r.cut() {
			if full := strings.TrimPrefix(p.Name+"."+name, "."); cutsByHand[full] == "" {
				t.Errorf("%s shortens a string, perhaps inside a character: use plain.Cut, or list it in cutsByHand", full)
			}
		}
		found := r.bounding()
		tried, err := triedIn(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(found)) {
			full := strings.TrimPrefix(p.Name+"."+name, ".")
			all++
			switch {
			case tried[name] && reasons[full] != "" || givenBack[full] != "" && reasons[full] != "":
				t.Errorf("%s is tried, and is listed in untried", full)
			case tried[name], givenBack[full] != "":
				trials++
			case reasons[full] == "":
				t.Errorf("%s has no trial: a test of its package calls limits.AtMost or limits.Below with it, or untried "+
					"has the reason", full)
			}
			delete(reasons, full)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		t.Errorf("%s is listed in untried and bounds nothing", name)
	}
	t.Logf("%d constants bound something, %d are tried at their boundary", all, trials)
	if all < 300 {
		t.Errorf("only %d bounds are found", all)
	}
}
