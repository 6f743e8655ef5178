package policy

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

var (
	featureTest = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Example|Fuzz)[A-Za-z0-9_]*)`")
	featureName = regexp.MustCompile("`([A-Z][A-Za-z]*)(?:\\.([A-Z][A-Za-z]*))?`")
)

// minFeatures is the number of features that the list has at least.
const minFeatures = 49

// featureFaults returns the faults of a page: tests and names that do not exist, and items of the
// list of features without a test. It also returns the number of these items.
func featureFaults(page string, tests, names map[string]bool) (faults []string, count int) {
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
	_, list, _ := strings.Cut(page, "\n## What there is\n")
	list, _, _ = strings.Cut(list, "\n## ")
	for _, item := range listItems(list) {
		count++
		if feature := boldItem.FindStringSubmatch(item); feature == nil || !saysMore(feature[2]) ||
			!featureTest.MatchString(feature[2]) {
			faults = append(faults, fmt.Sprintf("%q: want a feature in bold, how to use it, and a test that shows it", item))
		}
	}
	return faults, count
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
	page := readPage(t, "FEATURES.md")
	k := whatIsThere(t)
	faults, count := featureFaults(page, k.tests, k.names)
	for _, fault := range faults {
		t.Errorf("docs/FEATURES.md: %s", fault)
	}
	if count < minFeatures {
		t.Errorf("docs/FEATURES.md has %d features, fewer than %d", count, minFeatures)
	}
}

func TestFeatureRuleCatches(t *testing.T) {
	right := "# F\n\n## What there is\n\n- **a lock**: `Node.Lock`.\n  `mortise.TestLock`, `fence.Example_file`\n\n" +
		"## What there is not\n\n- **a door**: it would be open.\n"
	tests := map[string]bool{".TestLock": true, "fence.Example_file": true}
	names := map[string]bool{"Node.Lock": true}
	if faults, count := featureFaults(right, tests, names); len(faults) > 0 || count != 1 {
		t.Fatalf("a right page: %d features, %q", count, faults)
	}
	for what, change := range map[string][2]string{
		"a test that is gone":       {"`mortise.TestLock`", "`mortise.TestLocks`"},
		"a test of another package": {"`mortise.TestLock`", "`fence.TestLock`"},
		"a call that is gone":       {"`Node.Lock`", "`Node.Look`"},
		"a feature without a test":  {"\n  `mortise.TestLock`, `fence.Example_file`", ""},
		"a feature without a use":   {"`Node.Lock`.", ""},
		"a feature without a name":  {"**a lock**", "a lock"},
	} {
		if faults, _ := featureFaults(strings.Replace(right, change[0], change[1], 1), tests, names); len(faults) != 1 {
			t.Errorf("%s: %q", what, faults)
		}
	}
}
