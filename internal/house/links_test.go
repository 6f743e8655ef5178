package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestComingFromSnippetsRun holds our code in docs/COMING_FROM.md to the examples. The others' code is marked golang or java.
func TestComingFromSnippetsRun(t *testing.T) {
	page := readPage(t, "COMING_FROM.md")
	examples, err := filepath.Glob(filepath.Join(root, "examples", "comingfrom", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, at := range examples {
		text, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "// Output:") && filepath.Base(at) != "node_test.go" {
			t.Errorf("%s has no checked output", at)
		}
		code.WriteString(folded(string(text)))
	}
	found := snippet.FindAllStringSubmatch(page, -1)
	if len(found) < 5 {
		t.Fatalf("the page has %d snippets of ours, fewer than libraries that it speaks of", len(found))
	}
	for _, s := range found {
		if !strings.Contains(code.String(), folded(s[1])) {
			t.Errorf("this snippet of docs/COMING_FROM.md is not code of an example:\n%s", s[1])
		}
	}
	for _, theirs := range regexp.MustCompile("(?s)```(?:golang|java)\n(.*?)```").FindAllString(page, -1) {
		if strings.Contains(theirs, "mortise.") {
			t.Errorf("this is ours, and marked as theirs:\n%s", theirs)
		}
	}
}

var (
	heading = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	anchor  = regexp.MustCompile(`\]\(([^)#:\s]*)#([^)\s]+)\)`)
	fenced  = regexp.MustCompile("(?s)```.*?```")
)

// anchors are the places of a page that a link can lead to, as GitHub makes them of its headings.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(match[1]) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				b.WriteRune(r)
			}
		}
		found[b.String()] = true
	}
	return found
}

func TestAnchorsLeadSomewhere(t *testing.T) {
	pages, _ := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range anchor.FindAllStringSubmatch(string(text), -1) {
			target := text
			if match[1] != "" {
				if target, err = os.ReadFile(filepath.Join(filepath.Dir(page), match[1])); err != nil {
					t.Errorf("%s: %v", page, err)
					continue
				}
			}
			if !anchors(string(target))[match[2]] {
				t.Errorf("%s links to #%s of %q, which has no such heading", page, match[2], match[1])
			}
		}
	}
	if !anchors("## Memory or `Dir`\n")["memory-or-dir"] {
		t.Error("the rule does not make anchors as GitHub does")
	}
}
