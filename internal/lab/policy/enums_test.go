package policy

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// A misspelled literal would compile, but would never equal a value.
func TestWordsAreConstants(t *testing.T) {
	set, all := sources(t)
	words := map[string][]string{} // the constants of each type
	fields := map[string][]string{}
	for _, s := range all {
		if s.pkg != "" || s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 && literal(v.Values[0]) != "" {
				if is, ok := v.Type.(*ast.Ident); ok {
					words[is.Name] = append(words[is.Name], literal(v.Values[0]))
				}
			}
			return true
		})
	}
	for _, s := range all {
		if s.pkg != "" || s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok && len(f.Names) == 1 {
				if is, ok := f.Type.(*ast.Ident); ok && ast.IsExported(f.Names[0].Name) {
					fields[f.Names[0].Name] = append(fields[f.Names[0].Name], words[is.Name]...)
				}
			}
			return true
		})
	}
	if !slices.Contains(fields["Kind"], "freed") || !slices.Contains(fields["State"], "hung") ||
		!slices.Contains(fields["State"], "opened") {
		t.Fatalf("the words are not found: the rule would pass because it sees nothing: %v", fields)
	}
	for _, s := range all {
		check := func(field, value ast.Expr) {
			name := ""
			switch f := field.(type) {
			case *ast.SelectorExpr:
				name = f.Sel.Name
			case *ast.Ident:
				name = f.Name
			}
			if word := literal(value); word != "" && slices.Contains(fields[name], word) {
				t.Errorf("%s: %s is compared with, or set to, the literal %q: use its constant",
					set.Position(value.Pos()), name, word)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				check(n.X, n.Y)
			case *ast.KeyValueExpr:
				check(n.Key, n.Value)
			case *ast.AssignStmt:
				for i := range min(len(n.Lhs), len(n.Rhs)) {
					check(n.Lhs[i], n.Rhs[i])
				}
			case *ast.SwitchStmt:
				for _, clause := range n.Body.List {
					for _, value := range clause.(*ast.CaseClause).List {
						check(n.Tag, value)
					}
				}
			}
			return true
		})
	}
}

// literal returns the value of a string literal, or "".
func literal(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		text, _ := strconv.Unquote(lit.Value)
		return text
	}
	return ""
}
