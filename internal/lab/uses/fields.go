package uses

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
)

// Writers contains, for each field of a struct of a package, the files that write it: the name of
// the type, a dot, and the name of the field. A file writes a field if it assigns to the field or
// increments it. Literals do not count, since they make a new value.
type Writers map[string][]string

// Scattered returns the fields that at least n files write, in order.
func (w Writers) Scattered(n int) (all []string) {
	for _, field := range slices.Sorted(maps.Keys(w)) {
		if len(w[field]) >= n {
			all = append(all, field)
		}
	}
	return all
}

// Widths contains the number of fields of each struct of a package. The fields of an embedded
// struct of the same package count instead of the embedded field, but not if the struct has only a
// pointer to it.
type Widths map[string]int

// Structs is what is known of the structs of a package.
type Structs struct {
	Widths  Widths
	Writers Writers
}

// StructsOf returns the structs in the packages that the patterns match, like [Of].
func StructsOf(root string, patterns ...string) (map[string]Structs, error) {
	found := map[string]Structs{}
	err := load(root, patterns, func(dir string, p *loaded) { found[dir] = Structs{widths(p.pkg), p.writers()} })
	return found, err
}

func widths(pkg *types.Package) Widths {
	all := Widths{}
	for _, name := range pkg.Scope().Names() {
		named, ok := pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok || named.IsAlias() {
			continue
		}
		if s, ok := named.Type().Underlying().(*types.Struct); ok {
			all[name] = width(pkg, s)
		}
	}
	return all
}

func width(pkg *types.Package, s *types.Struct) (n int) {
	for field := range s.Fields() {
		n++
		if !field.Embedded() {
			continue
		}
		part, ok := field.Type().Underlying().(*types.Struct)
		if named, is := field.Type().(*types.Named); ok && is && named.Obj().Pkg() == pkg {
			n += width(pkg, part) - 1
		}
	}
	return n
}

func (p *loaded) writers() Writers {
	owner := map[types.Object]string{}
	for _, name := range p.pkg.Scope().Names() {
		if named, ok := p.pkg.Scope().Lookup(name).(*types.TypeName); ok && !named.IsAlias() {
			if s, ok := named.Type().Underlying().(*types.Struct); ok {
				for field := range s.Fields() {
					owner[field] = name
				}
			}
		}
	}
	all := Writers{}
	for _, file := range p.files {
		where := p.file(file.Pos())
		written := func(e ast.Expr) {
			for {
				switch x := e.(type) {
				case *ast.IndexExpr:
					e = x.X
				case *ast.ParenExpr:
					e = x.X
				case *ast.StarExpr:
					e = x.X
				case *ast.SelectorExpr:
					field, ok := p.info.Uses[x.Sel].(*types.Var)
					if name := owner[field]; ok && name != "" {
						name += "." + field.Name()
						if at, known := slices.BinarySearch(all[name], where); !known {
							all[name] = slices.Insert(all[name], at, where)
						}
						return
					}
					if e = x.X; !p.isStruct(e) {
						return
					}
				default:
					return
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					written(to)
				}
			case *ast.RangeStmt:
				if n.Tok == token.ASSIGN {
					written(n.Key)
					written(n.Value)
				}
			case *ast.IncDecStmt:
				written(n.X)
			}
			return true
		})
	}
	return all
}

// isStruct reports whether a selector selects a struct and not a pointer to one: to write a field
// of it is to write it.
func (p *loaded) isStruct(e ast.Expr) bool {
	x, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	field, ok := p.info.Uses[x.Sel].(*types.Var)
	if !ok {
		return false
	}
	_, is := field.Type().Underlying().(*types.Struct)
	return is
}
