package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

	"github.com/mortise-lock/mortise/internal/lab/mutants/binaries"
)

// loader type-checks packages of the tree. Imports are read from the compiler's export data. Each
// module has its own, because modules may require different versions of a dependency.
type loader struct {
	set     *token.FileSet
	imports map[string]types.Importer // by the directory of the module
	files   map[string][]string       // directory to its Go files without tests
	paths   map[string]string         // directory to import path
}

type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

func load(ctx context.Context, dirs []string) (*loader, error) {
	l := &loader{set: token.NewFileSet(), imports: map[string]types.Importer{}, files: map[string][]string{},
		paths: map[string]string{}}
	modules := map[string][]string{}
	for _, dir := range dirs {
		module := binaries.Module(dir)
		within, err := filepath.Rel(module, dir)
		if err != nil {
			return nil, err
		}
		modules[module] = append(modules[module], "./"+filepath.ToSlash(within))
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for module, within := range modules {
		exports := map[string]string{} // import path to file
		l.imports[module] = importer.ForCompiler(l.set, "gc", func(path string) (io.ReadCloser, error) {
			if file := exports[path]; file != "" {
				return os.Open(file)
			}
			return nil, fmt.Errorf("no export data of %s in module %s", path, module)
		})
		args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}, within...)
		command := exec.CommandContext(ctx, "go", args...)
		command.Dir = module
		var errs bytes.Buffer
		command.Stderr = &errs
		out, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("go list in %s: %w\n%s", module, err, errs.Bytes())
		}
		for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
			var p listed
			if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			exports[p.ImportPath] = p.Export
			if dir, err := filepath.Rel(here, p.Dir); err == nil && filepath.IsLocal(dir) {
				l.files[dir], l.paths[dir] = p.GoFiles, p.ImportPath
			}
		}
	}
	return l, nil
}

// checked is a package with its types. texts has the file's bytes as they were parsed.
type checked struct {
	files []*ast.File
	texts map[string][]byte // path below the working directory
	pkg   *types.Package
	info  *types.Info
}

// check parses and type-checks a package. instead replaces the text of files by name, and adds
// files.
func (l *loader) check(dir string, instead map[string][]byte) (*checked, error) {
	c := &checked{texts: map[string][]byte{}, info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{},
		Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Scopes: map[ast.Node]*types.Scope{}}}
	for _, name := range l.files[dir] {
		name = filepath.Join(dir, name)
		if _, replaced := instead[name]; replaced {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		c.texts[name] = text
	}
	for name, text := range instead {
		c.texts[name] = text
	}
	for _, name := range slices.Sorted(maps.Keys(c.texts)) {
		file, err := parser.ParseFile(l.set, name, c.texts[name], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, file)
	}
	config := types.Config{Importer: l.imports[binaries.Module(dir)]}
	var err error
	c.pkg, err = config.Check(l.paths[dir], l.set, c.files, c.info)
	return c, err
}
