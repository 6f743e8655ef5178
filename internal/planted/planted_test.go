package planted

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// TestListIsComplete holds the list to what the rooms ask for, both ways.
func TestListIsComplete(t *testing.T) {
	asks := regexp.MustCompile(`\bbug\("([^"]*)"\)`)
	asked := map[string]map[string]bool{} // by name, in which rooms
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		room, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, m := range asks.FindAllStringSubmatch(string(text), -1) {
			if asked[m[1]] == nil {
				asked[m[1]] = map[string]bool{}
			}
			asked[m[1]][filepath.ToSlash(room)] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(asked, "name") // this package's own comment
	listed := map[string]bool{}
	for _, b := range All() {
		if listed[b.Name] {
			t.Errorf("%s is listed twice", b.Name)
		}
		listed[b.Name] = true
		if !asked[b.Name][b.Room] {
			t.Errorf("%s is planted in %v, not in %q", b.Name, asked[b.Name], b.Room)
		}
		if b.Hazard == "" || b.Breaks == "" {
			t.Errorf("%s does not say what it breaks", b.Name)
		}
	}
	for name, rooms := range asked {
		if !listed[name] {
			t.Errorf("%s, planted in %v, is not listed", name, rooms)
		}
	}
	if len(listed) < 36 {
		t.Errorf("only %d bugs are planted", len(listed))
	}
}

// TestEveryBugHasALayer finds bugs that no layer looks for, and names of tests that no test has: such a layer would run nothing, and
// that is no failure.
func TestEveryBugHasALayer(t *testing.T) {
	var tests []string
	files, err := filepath.Glob(filepath.Join(root, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			tests = append(tests, m[1])
		}
	}
	for _, b := range All() {
		some, layers := false, 0
		for _, l := range Layers() {
			if l.Sees(b) {
				layers++
				some = some || !l.Dear
			}
		}
		if layers == 0 || b.Some && !some {
			t.Errorf("no layer looks for %s", b.Name)
		}
		for name := range strings.SplitSeq(b.Nodes, "|") {
			found := b.Nodes == ""
			for _, test := range tests {
				found = found || regexp.MustCompile(name).MatchString(test)
			}
			if !found {
				t.Errorf("%s: no test of whole nodes is called %q", b.Name, name)
			}
		}
	}
}
