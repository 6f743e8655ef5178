package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

// TestRules runs each rule on its programs in testdata: comments there say what it reports.
func TestRules(t *testing.T) {
	for _, a := range All() {
		t.Run(a.Name, func(t *testing.T) { analysistest.Run(t, analysistest.TestData(), a, a.Name) })
	}
}

// TestEachRuleLeavesTheOthersAlone runs all rules on all right programs.
func TestEachRuleLeavesTheOthersAlone(t *testing.T) {
	var names []string
	for _, a := range All() {
		names = append(names, a.Name)
	}
	set := token.NewFileSet()
	found, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax, Fset: set, Dir: analysistest.TestData(),
		Env: append(os.Environ(), "GOPATH="+analysistest.TestData(), "GO111MODULE=off", "GOWORK=off")}, names...)
	if err != nil || len(found) != len(names) {
		t.Fatal(found, err)
	}
	graph, err := checker.Analyze(All(), found, nil)
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for _, act := range graph.Roots {
		if act.Err != nil {
			t.Fatal(act.Err)
		}
		for _, d := range act.Diagnostics {
			if at := set.Position(d.Pos); filepath.Base(at.Filename) == "wrong.go" {
				wrong++
			} else {
				t.Errorf("%s: %s: %s", at, act.Analyzer.Name, d.Message)
			}
		}
	}
	if wrong < 60 {
		t.Errorf("only %d reports: the rules did not run", wrong)
	}
}

// TestEachRuleHasItsPrograms counts the programs. Each wrong one has a comment that expects a
// report, and a right one has none.
func TestEachRuleHasItsPrograms(t *testing.T) {
	const least = 10
	for _, a := range All() {
		for _, kind := range []string{"wrong", "right"} {
			name := filepath.Join("testdata", "src", a.Name, kind+".go")
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			programs := 0
			for _, d := range file.Decls {
				f, is := d.(*ast.FuncDecl)
				if !is || !strings.HasPrefix(f.Name.Name, kind) {
					continue
				}
				programs++
				expects := false
				for _, group := range file.Comments {
					expects = expects || f.Pos() < group.Pos() && group.End() <= f.End()+120 &&
						set.Position(group.Pos()).Line <= set.Position(f.End()).Line &&
						strings.HasPrefix(group.Text(), "want ")
				}
				if expects != (kind == "wrong") {
					t.Errorf("%s: %s expects a report: %v", name, f.Name.Name, expects)
				}
			}
			if programs < least {
				t.Errorf("%s has %d programs, fewer than %d", name, programs, least)
			}
		}
	}
}

// TestTheAnalyzersAreSound checks what every driver demands, and that two calls share no analyzer.
func TestTheAnalyzersAreSound(t *testing.T) {
	if err := analysis.Validate(All()); err != nil {
		t.Fatal(err)
	}
	for i, a := range All() {
		if a == All()[i] {
			t.Errorf("two calls return the same analyzer %s", a.Name)
		}
		if first, _, _ := strings.Cut(a.Doc, "\n"); !strings.HasPrefix(first, "find ") || len(first) > 80 {
			t.Errorf("%s: the first line of the text is %q", a.Name, first)
		}
	}
}
