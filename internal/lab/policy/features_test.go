package policy

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	featureTest = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Example|Fuzz)[A-Za-z0-9_]*)`")
	featureName = regexp.MustCompile("`([A-Z][A-Za-z]*)(?:\\.([A-Z][A-Za-z]*))?`")
)

// featureRows returns the numbers of the rows in the table of features, in order.
func featureRows() []string {
	var rows []string
	for i := range 53 {
		rows = append(rows, strconv.Itoa(i+1))
	}
	return rows
}

// featureFaults returns the faults of the page: tests and names that do not exist, missing rows,
// and features without a test.
func featureFaults(page string, tests, names map[string]bool) []string {
	var faults, rows []string
	for _, match := range featureTest.FindAllStringSubmatch(page, -1) {
		pkg := match[1]
		if pkg == "mortise" {
			pkg = ""
		}
		if !tests[pkg+"."+match[2]] {
			faults = append(faults, fmt.Sprintf("there is no test %s.%s", match[1], match[2]))
		}
	}
	for _, match := range featureName.FindAllStringSubmatch(page, -1) {
		if name := strings.TrimSuffix(match[1]+"."+match[2], "."); !names[name] {
			faults = append(faults, fmt.Sprintf("the root has no %s", name))
		}
	}
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || strings.Contains(line, "---") || strings.TrimSpace(cells[1]) == "" {
			continue
		}
		row, state := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[3])
		rows = append(rows, row)
		switch shown := featureTest.MatchString(cells[5]); {
		case !slices.Contains([]string{"yes", "part", "not yet", "no"}, state):
			faults = append(faults, fmt.Sprintf("%s is %q: want yes, part, not yet or no", row, state))
		case shown != (state == "yes" || state == "part"):
			faults = append(faults, fmt.Sprintf("%s is %q; a test shows it: %v", row, state, shown))
		}
	}
	if want := featureRows(); !slices.Equal(rows, want) {
		faults = append(faults, fmt.Sprintf("the rows are %v, want %v", rows, want))
	}
	return faults
}

// declared returns the names that a page may contain: "package.TestX" of all packages, and the
// root's exported names, such as "Node", "Node.Lock" or "Request.Key".
func declared(files []source) (tests, names map[string]bool) {
	tests, names = map[string]bool{}, map[string]bool{}
	for _, s := range files {
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if s.test && d.Recv == nil {
					tests[s.pkg+"."+d.Name.Name] = true
				} else if !s.test && s.pkg == "" {
					names[receiver(d)+d.Name.Name] = true
				}
			case *ast.GenDecl:
				if s.test || s.pkg != "" {
					continue
				}
				for _, spec := range d.Specs {
					addNames(names, spec)
				}
			}
		}
	}
	return tests, names
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	kind := d.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if name, ok := kind.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}

// addNames adds the exported names of a type with its fields, or of variables.
func addNames(names map[string]bool, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			names[name.Name] = true
		}
	case *ast.TypeSpec:
		names[s.Name.Name] = true
		if st, ok := s.Type.(*ast.StructType); ok {
			for _, field := range st.Fields.List {
				for _, name := range field.Names {
					names[s.Name.Name+"."+name.Name] = true
				}
			}
		}
	}
}

func TestFeaturesAreShown(t *testing.T) {
	page := readPage(t, "GUARANTEES.md")
	k := whatIsThere(t)
	for _, fault := range featureFaults(page, k.tests, k.names) {
		t.Errorf("docs/GUARANTEES.md: %s", fault)
	}
}

func TestFeatureRuleCatches(t *testing.T) {
	var right strings.Builder
	for _, row := range featureRows() {
		fmt.Fprintf(&right, "| %s | a feature | yes | `Node.Lock` | `mortise.TestLock`, `fence.Example_file` |\n", row)
	}
	tests := map[string]bool{".TestLock": true, "fence.Example_file": true}
	names := map[string]bool{"Node.Lock": true}
	if faults := featureFaults(right.String(), tests, names); len(faults) > 0 {
		t.Fatalf("a right page: %q", faults)
	}
	for what, change := range map[string][2]string{
		"a test that is gone":       {"`mortise.TestLock`", "`mortise.TestLocks`"},
		"a test of another package": {"`mortise.TestLock`", "`fence.TestLock`"},
		"a call that is gone":       {"`Node.Lock`", "`Node.Look`"},
		"a promise without a test":  {"| `mortise.TestLock`, `fence.Example_file` |", "| |"},
		"a test of what is not":     {"yes", "no"},
		"a word that says nothing":  {"yes", "maybe"},
		"a row that is missing":     {"| 7 |", "| 8 |"},
	} {
		if faults := featureFaults(strings.Replace(right.String(), change[0], change[1], 1), tests,
			names); len(faults) != 1 {
			t.Errorf("%s: %q", what, faults)
		}
	}
}
