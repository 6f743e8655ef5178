package policy

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	modulePath = "github.com/mortise-lock/mortise"

	// The most exported fields of the root and of the packages in its signatures, and the most
	// constants and variables.
	maxFields, maxConstants = 198, 86
)

// tally counts the exported identifiers of one package.
type tally struct{ types, functions, methods, fields, constants, variables int }

func (c tally) String() string {
	return fmt.Sprintf("%d types, %d functions, %d methods, %d fields, %d constants, %d variables", c.types, c.functions,
		c.methods, c.fields, c.constants, c.variables)
}

// loader checks the types of this module's packages. Of other packages it knows only the names, as
// they are all that the count needs.
type loader struct {
	set    *token.FileSet
	module map[string]*types.Package
}

func (l *loader) Import(path string) (*types.Package, error) {
	if p := l.module[path]; p != nil {
		return p, nil
	}
	dir, ours := strings.CutPrefix(path, modulePath)
	if !ours {
		p := types.NewPackage(path, filepath.Base(path))
		p.MarkComplete()
		l.module[path] = p
		return p, nil
	}
	found, err := build.ImportDir(filepath.Join(root, dir), 0)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range found.GoFiles {
		f, err := parser.ParseFile(l.set, filepath.Join(found.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	check := types.Config{Importer: l, IgnoreFuncBodies: true, Error: func(error) {}} // names of others are unknown
	p, _ := check.Check(path, l.set, files, nil)
	l.module[path] = p
	return p, nil
}

// countOf counts the exported identifiers of a package. A field of an embedded type counts once, in
// its own type, and a method counts for each type that has it. A name that face shows again counts
// there. The packages of this module in signatures are added to shows.
func countOf(p, face *types.Package, shows map[*types.Package]bool) (c tally) {
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		if reach(o.Type(), p, shows); p != face && face.Scope().Lookup(name) != nil {
			if of, is := o.(*types.TypeName); is {
				c.members(of.Type(), shows) // face has an alias
			}
			continue
		}
		switch o := o.(type) {
		case *types.Const:
			c.constants++
		case *types.Var:
			c.variables++
		case *types.Func:
			c.functions++
		case *types.TypeName:
			c.types++
			if !o.IsAlias() {
				c.members(o.Type(), shows)
			}
		}
	}
	return c
}

func (c *tally) members(of types.Type, shows map[*types.Package]bool) {
	named := of.(*types.Named)
	methods := types.NewMethodSet(types.NewPointer(of))
	if types.IsInterface(of) {
		methods = types.NewMethodSet(of)
	}
	for m := range methods.Methods() {
		if m.Obj().Exported() {
			c.methods++
			reach(m.Obj().Type(), named.Obj().Pkg(), shows)
		}
	}
	c.fields += fieldsOf(of, named.Obj().Pkg(), shows)
}

func fieldsOf(of types.Type, in *types.Package, shows map[*types.Package]bool) (count int) {
	if p, is := of.(*types.Pointer); is {
		of = p.Elem()
	}
	s, is := of.Underlying().(*types.Struct)
	if !is {
		return 0
	}
	for f := range s.Fields() {
		if !f.Exported() && !f.Embedded() {
			continue
		}
		reach(f.Type(), in, shows)
		switch named, _ := types.Unalias(f.Type()).(*types.Named); {
		case !f.Embedded():
			count++
		case named == nil || named.Obj().Pkg() != in || !named.Obj().Exported():
			count += fieldsOf(f.Type(), in, shows) // no other type of the count has these fields
		}
	}
	return count
}

// reach adds the packages of this module whose types occur in a type.
func reach(t types.Type, from *types.Package, shows map[*types.Package]bool) {
	switch t := t.(type) {
	case *types.Alias:
		reach(types.Unalias(t), from, shows)
	case *types.Named:
		if p := t.Obj().Pkg(); p != nil && p != from && strings.HasPrefix(p.Path(), modulePath) {
			shows[p] = true
		}
		for a := range t.TypeArgs().Types() {
			reach(a, from, shows)
		}
	case *types.Signature:
		for v := range t.Params().Variables() {
			reach(v.Type(), from, shows)
		}
		for v := range t.Results().Variables() {
			reach(v.Type(), from, shows)
		}
	case *types.Map:
		reach(t.Key(), from, shows)
		reach(t.Elem(), from, shows)
	case interface{ Elem() types.Type }: // pointers, slices, arrays and channels
		reach(t.Elem(), from, shows)
	}
}

// Each exported identifier is one that a user must read, or be told to skip. The command
//
//	go test ./internal/lab/policy -run TestTheFaceIsSmall -v
//
// prints how many there are. A package in a signature counts too, so that nothing hides there.
func TestTheFaceIsSmall(t *testing.T) {
	l := &loader{token.NewFileSet(), map[string]*types.Package{}}
	face, err := l.Import(modulePath)
	if err != nil {
		t.Fatal(err)
	}
	counted, open := map[*types.Package]bool{}, []*types.Package{face}
	var sum tally
	for len(open) > 0 {
		p := open[0]
		open, counted[p] = open[1:], true
		shows := map[*types.Package]bool{}
		c := countOf(p, face, shows)
		t.Logf("%s: %v", p.Path(), c)
		sum = tally{sum.types + c.types, sum.functions + c.functions, sum.methods + c.methods, sum.fields + c.fields,
			sum.constants + c.constants, sum.variables + c.variables}
		for further := range shows {
			if !counted[further] && !slices.Contains(open, further) {
				open = append(open, further)
			}
		}
	}
	t.Logf("together: %v", sum)
	if sum.types < 20 || sum.methods < 50 {
		t.Fatal("the root is not found: the rule would pass because it sees nothing")
	}
	if named := sum.constants + sum.variables; sum.fields > maxFields || named > maxConstants {
		t.Errorf("the face has %d fields, and %d constants and variables, more than %d and %d: say it with what is there",
			sum.fields, named, maxFields, maxConstants)
	}
}

// The fields of an embedded type count in that type, or in the outer one if users see no other.
func TestEmbeddedFieldsCount(t *testing.T) {
	const text = `package p
		import "github.com/mortise-lock/mortise/other"
		type A struct { X, Y int; z int }
		type B struct { A; W *other.T }
		type c struct { V int }
		type D struct { *c }
		func (*A) M() {}
		func F(map[string][]other.U) {}
		const K, k = 1, 2`
	l := &loader{token.NewFileSet(), map[string]*types.Package{}}
	other := types.NewPackage(modulePath+"/other", "other")
	for _, name := range []string{"T", "U"} {
		o := types.NewTypeName(token.NoPos, other, name, nil)
		types.NewNamed(o, types.NewStruct(nil, nil), nil)
		other.Scope().Insert(o)
	}
	other.MarkComplete()
	l.module[other.Path()] = other
	file, err := parser.ParseFile(l.set, "p.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&types.Config{Importer: l}).Check("p", l.set, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	shows := map[*types.Package]bool{}
	c := countOf(p, p, shows)
	if c != (tally{types: 3, functions: 1, methods: 2, fields: 4, constants: 1}) || !shows[other] {
		t.Errorf("%v, and other packages: %v", c, shows)
	}
}
