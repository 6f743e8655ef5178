package limits

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// kind is what an input must be tried with.
type kind string

const (
	duration kind = "duration"
	count    kind = "count"
	path     kind = "path"
)

// layers are the packages of the root module that programs do not import: their API may change with
// any commit, and their owners check what enters them.
const layers = `^(cluster|lockfsm|model|raftlog|session|transport|examples|cmd)(/|$)|(^|/)internal(/|$)`

// paths matches the names of fields and parameters that are paths of files.
const paths = `(?i)(dir|file|path|html|cert|socket)s?$|^(CA|TLSFiles\.Key)$`

// inputs returns the durations, counts and paths that the exported API of the module in dir takes,
// by name: "tick.Job.Late" for a field, "IDs(count)" for a parameter.
func inputs(dir string) (map[string]kind, error) {
	command := exec.Command("go", "list", "-export", "-deps", "-f",
		"{{.ImportPath}}\t{{.Export}}\t{{if .Module}}{{if .Module.Main}}{{.Module.Path}}{{end}}{{end}}\t{{.Name}}", "./...")
	command.Dir, command.Stderr = dir, os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, err
	}
	exports, ours, inner := map[string]string{}, map[string]string{}, regexp.MustCompile(layers)
	for line := range strings.Lines(string(out)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		exports[cells[0]] = cells[1]
		local := strings.TrimPrefix(strings.TrimPrefix(cells[0], cells[2]), "/")
		if cells[2] != "" && cells[3] != "main" && !inner.MatchString(local) {
			ours[cells[0]] = local
		}
	}
	f := finder{found: map[string]kind{}, ours: ours, paths: regexp.MustCompile(paths), seen: map[*types.Named]bool{},
		returned: map[*types.Named]bool{}}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	var all []*types.Package
	for name := range ours {
		pkg, err := from.Import(name)
		if err != nil {
			return nil, err
		}
		all = append(all, pkg)
	}
	for _, pkg := range all {
		eachFunction(pkg, f.results)
	}
	for _, pkg := range all {
		eachFunction(pkg, f.parameters)
		f.receivers(pkg)
	}
	return f.found, nil
}

type finder struct {
	found    map[string]kind
	ours     map[string]string // the packages: the name in the module, by import path
	paths    *regexp.Regexp
	seen     map[*types.Named]bool
	returned map[*types.Named]bool // types of results: the library makes their values
}

// eachFunction calls do for each exported function and method of a package.
func eachFunction(pkg *types.Package, do func(pkg *types.Package, name string, s *types.Signature)) {
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		if is, ok := object.(*types.Func); ok {
			do(pkg, name, is.Signature())
		}
		named, ok := object.Type().(*types.Named)
		if _, is := object.(*types.TypeName); !is || !ok || types.IsInterface(named) {
			continue // values of interfaces are the program's, and what they get are not inputs
		}
		for method := range named.Methods() {
			if method.Exported() {
				do(pkg, name+"."+method.Name(), method.Signature())
			}
		}
	}
}

func (f *finder) results(_ *types.Package, _ string, s *types.Signature) {
	for result := range s.Results().Variables() {
		t := result.Type()
		if slice, ok := t.Underlying().(*types.Slice); ok {
			t = slice.Elem()
		}
		if pointer, ok := t.(*types.Pointer); ok {
			t = pointer.Elem()
		}
		if named, ok := t.(*types.Named); ok {
			f.returned[named.Origin()] = true
		}
	}
}

func (f *finder) parameters(pkg *types.Package, name string, s *types.Signature) {
	for p := range s.Params().Variables() {
		f.visit(pkg, fmt.Sprintf("%s(%s)", name, p.Name()), p.Name(), p.Type())
	}
}

// receivers visits the fields of types that programs make and call methods of.
func (f *finder) receivers(pkg *types.Package) {
	fault := types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	for _, name := range pkg.Scope().Names() {
		object, ok := pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok || !object.Exported() {
			continue
		}
		named, ok := object.Type().(*types.Named)
		if ok && named.NumMethods() > 0 && !f.returned[named] && !types.Implements(named, fault) &&
			!types.Implements(types.NewPointer(named), fault) {
			f.fields(named)
		}
	}
}

func (f *finder) fields(named *types.Named) {
	named = named.Origin()
	is, ok := named.Underlying().(*types.Struct)
	pkg := named.Obj().Pkg()
	if !ok || f.seen[named] || pkg == nil {
		return
	}
	if _, public := f.ours[pkg.Path()]; !public {
		return
	}
	f.seen[named] = true
	for field := range is.Fields() {
		if field.Exported() {
			name := named.Obj().Name() + "." + field.Name()
			short := field.Name()
			if f.paths.MatchString(name) {
				short = name
			}
			f.visit(pkg, name, short, field.Type())
		}
	}
}

func (f *finder) visit(pkg *types.Package, name, short string, t types.Type) {
	full := name
	if local := f.ours[pkg.Path()]; local != "" {
		full = local + "." + name
	}
	if t.String() == "time.Duration" {
		f.found[full] = duration
		return
	}
	switch t := t.(type) {
	case *types.Basic:
		switch {
		case t.Info()&types.IsInteger != 0 && t.Kind() != types.Uint8:
			f.found[full] = count
		case t.Kind() == types.String && f.paths.MatchString(short):
			f.found[full] = path
		}
	case *types.Pointer:
		f.visit(pkg, name, short, t.Elem())
	case *types.Slice:
		f.visit(pkg, name, short, t.Elem())
	case *types.Map:
		f.visit(pkg, name, short, t.Elem())
	case *types.Alias:
		f.visit(pkg, name, short, types.Unalias(t))
	case *types.Named:
		f.fields(t)
	case *types.Signature: // its results are inputs
		for result := range t.Results().Variables() {
			f.visit(pkg, name+"()", result.Name(), result.Type())
		}
	}
}
