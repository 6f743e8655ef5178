package main

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/mutants"
	"github.com/mortise-lock/mortise/internal/lab/mutants/binaries"
)

const sample = `package sample

import "errors"

type limits struct{ most, least int }

type box struct {
	limits limits
	n      int
	told   func(int)
}

func (b *box) put(n, other int) error {
	if n > b.limits.most {
		return errors.New("too many")
	}
	b.n = n
	b.told(n)
	b.told(n + 1)
	b.told(n + 2)
	switch n {
	case 1:
		b.told(other)
	}
	return nil
}
`

func sampled(t *testing.T) (*loader, *checked, []*point) {
	l := &loader{set: token.NewFileSet(), paths: map[string]string{"sample": "sample"}}
	l.imports = map[string]types.Importer{".": importer.ForCompiler(l.set, "source", nil)}
	c, err := l.check("sample", map[string][]byte{"sample/sample.go": []byte(sample)})
	if err != nil {
		t.Fatal(err)
	}
	return l, c, c.points(l.set, c.files[0])
}

// TestEveryKindOfMutationIsFound checks what is found in a sample.
func TestEveryKindOfMutationIsFound(t *testing.T) {
	_, _, found := sampled(t)
	var edits []string
	for _, p := range found {
		edits = append(edits, fmt.Sprintf("%d %s: %s", p.line, p.op, p.edit))
	}
	for _, edit := range []string{
		"17 drop: drop b.n = n",
		"18 drop: drop b.told(n)",
		"17 swap: swap b.n = n and b.told(n)",
		"14 negate: negate n > b.limits.most",
		"14 skip: never if n > b.limits.most",
		"14 operand: b.limits.least for b.limits.most in n > b.limits.most",
		"14 operand: other for n in n > b.limits.most",
		"17 operand: other for n in b.n = n",
		"18 operand: other for n in b.told(n)",
		"19 drop: drop b.told(n + 1)",
		"20 drop: drop b.told(n + 2)",
		"19 operand: other for n in n + 1",
		"20 operand: other for n in n + 2",
		"23 operand: n for other in b.told(other)",
		"23 drop: drop b.told(other)",
		"23 skip: never case 1: b.told(other)",
	} {
		if !slices.Contains(edits, edit) {
			t.Errorf("%q is not found", edit)
		}
	}
	if len(edits) != 16 {
		t.Errorf("found %d mutations:\n%s", len(edits), strings.Join(edits, "\n"))
	}
}

// TestMutationsCompileTogether puts all mutations that do not cross into one text.
func TestMutationsCompileTogether(t *testing.T) {
	l, c, found := sampled(t)
	var together []*point
	for _, p := range found {
		if !slices.ContainsFunc(together, p.crosses) {
			p.n = len(together) + 1
			together = append(together, p)
		}
	}
	files := overlaid(c, "sample", together, len(together))
	if _, err := l.check("sample", files); err != nil {
		t.Errorf("%v in\n%s", err, files["sample/sample.go"])
	}
	if strings.Contains(asker, "MORTISE_") {
		t.Error("the program refuses variables of this kind, so it would not run with a mutation")
	}
	for n := range len(together) {
		number := fmt.Sprintf("(%d", n+1)
		if text := string(files["sample/sample.go"]); strings.Count(text, "mutated"+number+")")+
			strings.Count(text, "mutatedPick"+number+",") != 1 {
			t.Errorf("mutation %d is not in the text once:\n%s", n+1, text)
		}
	}
}

// TestADrawRepeats checks that equal seeds draw equal mutations, that the ID of a mutation does not
// depend on its line, and that nothing is drawn twice.
func TestADrawRepeats(t *testing.T) {
	in := []area{{name: "sample", dirs: []string{"sample"}}}
	drawn := func(seed uint64, moved string) (ids []string) {
		l, _, _ := sampled(t)
		c, err := l.check("sample", map[string][]byte{"sample/sample.go": []byte(moved + sample)})
		if err != nil {
			t.Fatal(err)
		}
		tr := &tree{loader: l, packages: map[string]*checked{"sample": c}, points: map[string]map[op][]*point{"sample": {}}}
		for _, p := range c.points(l.set, c.files[0]) {
			p.area, p.dir = "sample", "sample"
			tr.points["sample"][p.op] = append(tr.points["sample"][p.op], p)
		}
		for _, p := range tr.draw(in, 6, seed) {
			ids = append(ids, p.id)
		}
		return ids
	}
	first := drawn(1, "")
	if len(first) != 6 || len(slices.Compact(slices.Sorted(slices.Values(first)))) != 6 {
		t.Errorf("seed 1 draws %v", first)
	}
	if again := drawn(1, "// A comment.\n\n"); !slices.Equal(first, again) {
		t.Errorf("seed 1 draws %v, and below a comment %v", first, again)
	}
	if other := drawn(2, ""); slices.Equal(first, other) {
		t.Errorf("seeds 1 and 2 draw %v", first)
	}
}

// TestJudgementsHaveReasons checks the list of the survivors that need no test.
func TestJudgementsHaveReasons(t *testing.T) {
	text, err := os.ReadFile("known.txt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := known(string(text)); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]bool{"": true, "# x\n\n": true, "0123abcd a.go f: equal\n": true,
		"0123abcd a.go f\n": false, "0123 a.go: equal\n": false, "0123abcd a.go f: \n": false} {
		if _, err := known(text); (err == nil) != want {
			t.Errorf("%q is read with %v", text, err)
		}
	}
}

// TestEveryEditCompiles type-checks the planted bugs of all packages, because a merge builds only
// those that it switches on.
func TestEveryEditCompiles(t *testing.T) {
	t.Chdir("../../../..")
	sources, err := mutants.Sources(".")
	if err != nil {
		t.Fatal(err)
	}
	instead := map[string]map[string][]byte{}
	for file, text := range sources {
		dir := filepath.Dir(filepath.FromSlash(file))
		if instead[dir] == nil {
			instead[dir] = map[string][]byte{}
		}
		instead[dir][filepath.FromSlash(file)] = []byte(text)
	}
	l, err := load(t.Context(), slices.Sorted(maps.Keys(instead)))
	if err != nil {
		t.Fatal(err)
	}
	for dir, texts := range instead {
		if _, err := l.check(dir, texts); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if len(instead) < 30 {
		t.Errorf("only %d packages have planted bugs", len(instead))
	}
}

// TestEachAreaIsThere checks that no package of an area has moved, that tests cover each, and that
// each adapter is in an area.
func TestEachAreaIsThere(t *testing.T) {
	t.Chdir("../../../..")
	in := map[string]bool{}
	for _, a := range areas() {
		for _, dir := range a.dirs {
			if in[dir] {
				t.Errorf("%s is in two areas", dir)
			}
			in[dir] = true
			if files, _ := filepath.Glob(filepath.Join(dir, "*.go")); len(files) == 0 {
				t.Errorf("%s of area %s has no Go files", dir, a.name)
			}
			if !slices.ContainsFunc(suitesFor(dir), func(s suite) bool { return hasTests(s.pkg) }) {
				t.Errorf("%s of area %s has no tests", dir, a.name)
			}
		}
	}
	modules, err := filepath.Glob("adapters/*")
	if err != nil || len(modules) == 0 {
		t.Fatal("no adapters", err)
	}
	for _, module := range modules {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(in)), func(dir string) bool {
			return binaries.Module(dir) == module
		}) {
			t.Errorf("no area has %s", module)
		}
	}
}

// TestHunksAreRead checks which lines count as changed.
func TestHunksAreRead(t *testing.T) {
	got := hunks("diff --git a.go a.go\n--- a.go\n+++ a.go\n@@ -1,2 +3 @@ func f() {\n-x\n+y\n" +
		"@@ -9,0 +10,4 @@\n+y\n@@ -30,2 +33,0 @@\n-x\n--- /dev/null\n+++ b/c.go\n@@ -0,0 +1,7 @@\n")
	want := map[string][]lines{"a.go": {{3, 3}, {10, 13}}, "b/c.go": {{1, 7}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
}
