package mutants

import (
	"go/format"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// TestEditsFit checks that every edit fits its file, and that the result is valid Go.
func TestEditsFit(t *testing.T) {
	planted, err := Planted(root)
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range planted {
		if formatted, err := format.Source([]byte(text)); err != nil || string(formatted) != text {
			t.Errorf("with its bugs %s is not formatted, or no Go (%v)", file, err)
		}
	}
}

func TestEditsThatDoNotFit(t *testing.T) {
	lines := []string{"a", "b", "a", "b", "c"}
	for _, tc := range []struct {
		old  []string
		want int
	}{{[]string{"a", "b"}, 2}, {[]string{"b", "c"}, 1}, {[]string{"c", "d"}, 0}, {nil, 0}, {[]string{"a b"}, 0}} {
		if got := places(lines, tc.old); len(got) != tc.want {
			t.Errorf("%q stands at %v, want %d places", tc.old, got, tc.want)
		}
	}
	for text, want := range map[string]int{"@@ f\n a\n-b\n+c\n@@ g\n-d\n": 2, " a\n": -1, "@@ f\na\n": -1,
		"@@ f\n\n": -1, "": 0} {
		if all, err := Parse(text); err == nil && len(all) != want || (err != nil) != (want < 0) {
			t.Errorf("%q is %v, %v", text, all, err)
		}
	}
}

func TestListIsComplete(t *testing.T) {
	all, err := Edits()
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]map[string]bool{} // for each bug, the packages in which it is planted
	for _, e := range all {
		for _, name := range e.Bugs() {
			if asked[name] == nil {
				asked[name] = map[string]bool{}
			}
			asked[name][path.Dir(e.File)] = true
		}
	}
	listed := map[string]bool{}
	for _, b := range All() {
		if listed[b.Name] {
			t.Errorf("%s is listed twice", b.Name)
		}
		listed[b.Name] = true
		if !asked[b.Name][b.Package] {
			t.Errorf("%s is planted in %v, not in %q", b.Name, asked[b.Name], b.Package)
		}
		if b.Hazard == "" || b.Breaks == "" {
			t.Errorf("%s does not say what it breaks", b.Name)
		}
	}
	for name, pkgs := range asked {
		if !listed[name] {
			t.Errorf("%s, planted in %v, is not listed", name, pkgs)
		}
	}
	if len(listed) < 36 {
		t.Errorf("only %d bugs are planted", len(listed))
	}
}

// TestEveryBugHasALayer reports bugs without a layer, and bugs whose tests do not exist.
func TestEveryBugHasALayer(t *testing.T) {
	var tests []string
	files, err := filepath.Glob(filepath.Join(root, "internal", "lab", "e2e", "*_test.go"))
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
			if !found && b.Some {
				t.Errorf("%s: no test of whole nodes is called %q", b.Name, name)
			}
		}
	}
}

// TestCatchersRunAtAMerge checks that a merge runs each recorded catcher, with its bug or without.
// Those of the bugs that a merge switches on must exist. Of other bugs an old record does no harm:
// all layers are run.
func TestCatchersRunAtAMerge(t *testing.T) {
	known, bodies := Catchers(), map[string]map[string]string{} // by package and test
	body := func(pkg, test string) string {
		if bodies[pkg] == nil {
			bodies[pkg] = map[string]string{}
			files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range regexp.MustCompile(`(?ms)^func (Test\w+)\((.*?)^}`).FindAllStringSubmatch(string(text), -1) {
					bodies[pkg][m[1]] = m[2]
				}
			}
		}
		return bodies[pkg][test]
	}
	for _, b := range All() {
		c, is := known[b.Name]
		if !is {
			if b.Some {
				t.Errorf("%s has no recorded catcher: scripts/planted -record %s", b.Name, b.Name)
			}
			continue
		}
		found := false
		for _, l := range Layers() {
			if l.Name == c.Layer && l.Sees(b) {
				found = true
				if text := body(l.Package, c.Test); text == "" && b.Some {
					t.Errorf("%s was caught by %s, which is not in %s: scripts/planted -record %s", b.Name, c.Test,
						l.Package, b.Name)
				} else if strings.Contains(text, "slow.Nightly(") {
					t.Errorf("%s is caught by %s, which no merge runs", b.Name, c.Test)
				}
			}
		}
		if !found && b.Some {
			t.Errorf("%s was caught by the layer %s, which does not look for it: scripts/planted -record %s", b.Name,
				c.Layer, b.Name)
		}
	}
	if text, err := edits.ReadFile(caught); err != nil || Record(known) != string(text) {
		t.Error("caught.txt is not sorted, or has a line twice")
	}
}
