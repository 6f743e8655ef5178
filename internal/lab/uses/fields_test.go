package uses

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestStructs reads a module with one struct of each kind.
func TestStructs(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n",
		"a.go": `package m

type part struct{ x, y int }
type wide struct {
	part
	*other
	z  []int
	in struct{ deep int }
}
type other struct{ n int }
type alias = wide

func (w *wide) a() { w.x, w.z[0] = 1, 2; w.n++; _ = wide{z: nil} }
`,
		"b.go": "package m\n\nfunc (w *wide) b() { w.part.x = 1; (*w).z = nil; w.in.deep = 2; y := w.y; _ = y }\n",
		"c.go": "package m\n\nfunc c(w wide) { w.x--; for w.n = range 3 {\n} }\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := StructsOf(root, "./...")
	if err != nil {
		t.Fatal(err)
	}
	got := found[""]
	if want := (Widths{"part": 2, "wide": 5, "other": 1}); !maps.Equal(got.Widths, want) {
		t.Errorf("widths %v, want %v", got.Widths, want)
	}
	want := Writers{"part.x": {"a.go", "b.go", "c.go"}, "wide.z": {"a.go", "b.go"}, "other.n": {"a.go", "c.go"},
		"wide.in": {"b.go"}}
	if !maps.EqualFunc(got.Writers, want, slices.Equal) {
		t.Errorf("writers %v, want %v", got.Writers, want)
	}
	for n, fields := range map[int][]string{
		1: {"other.n", "part.x", "wide.in", "wide.z"}, 2: {"other.n", "part.x", "wide.z"}, 3: {"part.x"}, 4: nil,
	} {
		if all := got.Writers.Scattered(n); !slices.Equal(all, fields) {
			t.Errorf("written in %d files: %v, want %v", n, all, fields)
		}
	}
}
