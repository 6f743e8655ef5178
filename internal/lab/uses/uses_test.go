package uses

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// plant writes a module into a new directory.
func plant(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// In the package p, a and b use each other, by a type and by a method; c and d close a longer
// cycle. The package q uses p, which closes none. A receiver, a field, a test, and what a file uses
// of itself are no uses.
func planted(t *testing.T) map[string]Files {
	t.Helper()
	t.Setenv("GOWORK", "off")
	root := plant(t, map[string]string{
		"go.mod":        "module planted\n\ngo 1.25\n",
		"p/a.go":        "package p; type A struct{ f int }; func (a A) use() { a.work(); D() }",
		"p/b.go":        "package p; func (A) work() { var _ A }",
		"p/c.go":        "package p; func C() { A{}.use() }",
		"p/d.go":        "package p; func D() { C() }",
		"p/e.go":        "package p; func E() { D(); D() }; func (a A) other() { _ = a.f; E() }",
		"p/a_test.go":   "package p; var _ = E",
		"q/q.go":        "package q; import \"planted/p\"; var X = p.E",
		"root.go":       "package planted; const Two = 2 * one",
		"other.go":      "package planted; const one = 1",
		"p/other/no.go": "package other",
	})
	found, err := Of(root, "./...")
	if err != nil {
		t.Fatal(err)
	}
	if one, err := Of(root, "./q"); err != nil || len(one) != 1 || one["q"] == nil {
		t.Errorf("of the package q: %v, %v", one, err)
	}
	return found
}

func TestPlantedUses(t *testing.T) {
	found := planted(t)
	if dirs := slices.Sorted(maps.Keys(found)); !slices.Equal(dirs, []string{"", "p", "p/other", "q"}) {
		t.Fatalf("the packages are %q", dirs)
	}
	u := found["p"]
	if is, want := u.Figures(), (Ceiling{Pairs: 1, Against: 2, Knot: 4}); is != want {
		t.Errorf("the figures are %+v, want %+v", is, want)
	}
	if pairs := u.Pairs(); !slices.Equal(pairs, [][2]string{{"a.go", "b.go"}}) {
		t.Errorf("the pairs are %q", pairs)
	}
	if knot := u.Knot(); !slices.Equal(knot, []string{"a.go", "b.go", "c.go", "d.go"}) {
		t.Errorf("the knot is %q", knot)
	}
	if n := u.Uses(); n != 6 || found[""].Uses() != 1 || found["q"].Uses() != 0 {
		t.Errorf("there are %d, %d and %d uses, want 6, 1 and 0", n, found[""].Uses(), found["q"].Uses())
	}
	for _, test := range []struct{ from, to, names string }{
		{"a.go", "b.go", "work"}, {"b.go", "a.go", "A"}, {"c.go", "a.go", "A use"}, {"e.go", "d.go", "D"},
		{"e.go", "a.go", ""},
	} {
		if names := strings.Join(u[test.from][test.to], " "); names != test.names {
			t.Errorf("%s uses %q of %s, want %q", test.from, names, test.to, test.names)
		}
	}
}

// Where files have a layering, no use breaks the one that is found, whatever the files are called.
func TestALayeringIsFound(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		u, order := Files{}, random.Perm(30)
		for i, n := range order {
			name := fmt.Sprintf("%02d.go", n)
			u[name] = map[string][]string{}
			for _, lower := range order[:i] {
				if random.IntN(8) == 0 {
					u[name][fmt.Sprintf("%02d.go", lower)] = []string{"f"}
				}
			}
		}
		if n := u.Against(); n != 0 {
			t.Errorf("seed %d: %d uses break the layering", seed, n)
		}
	}
}

// Each figure is tried one below the present one, at it, and one above it.
func TestCeilings(t *testing.T) {
	found := planted(t)
	is := found["p"].Figures()
	for _, test := range []struct {
		name string
		set  func(c *Ceiling, by int)
	}{
		{"pairs", func(c *Ceiling, by int) { c.Pairs += by }},
		{"against", func(c *Ceiling, by int) { c.Against += by }},
		{"knot", func(c *Ceiling, by int) { c.Knot += by }},
	} {
		for by := -1; by <= 1; by++ {
			most := is
			test.set(&most, by)
			c := Ceilings{"p": most}
			if above := c.Above(found); len(above) != max(-by, 0) {
				t.Errorf("%s, %+d: above: %q", test.name, by, above)
			}
			if below := c.Below(found); len(below) != max(by, 0) {
				t.Errorf("%s, %+d: below: %q", test.name, by, below)
			}
			want := is
			test.set(&want, min(by, 0))
			if lowered := c.Lowered(found); len(lowered) != 1 || lowered["p"] != want {
				t.Errorf("%s, %+d: lowered to %v, want %v", test.name, by, lowered, want)
			}
		}
	}
	if above := (Ceilings{}).Above(found); len(above) != 3 {
		t.Errorf("a directory that no line names may have nothing: %q", above)
	}
	c := Ceilings{"": {Knot: 2}, "gone": {Pairs: 7, Knot: 2}}
	if lowered := c.Lowered(found); len(lowered) != 0 || len(c.Below(found)) != 2 || len(c.Above(found)) != 3 {
		t.Errorf("a line of nothing stays: %v", lowered)
	}
}

func TestListIsReadAsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.txt")
	want := Ceilings{"": {1, 2, 3}, "p": {4, 5, 6}, "p/q": {7, 8, 9}}
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	if is, err := ReadCeilings(path); err != nil || !maps.Equal(is, want) {
		t.Errorf("read %v, %v; written %v", is, err, want)
	}
	for _, text := range []string{"p 1 2", "p 1 2 x", "p 1 2 3\np 1 2 3", ". 1 2 3\n. 1 2 3"} {
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if is, err := ReadCeilings(path); err == nil {
			t.Errorf("%q is read as %v", text, is)
		}
	}
}
