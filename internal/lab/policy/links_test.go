package policy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	heading = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	anchor  = regexp.MustCompile(`\]\(([^)#:\s]*)#([^)\s]+)\)`)
	fenced  = regexp.MustCompile("(?s)```.*?```")
)

// anchors returns the anchors of a page, as GitHub derives them from the headings.
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
	for _, page := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "SECURITY.md")) {
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

var link = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	more, _ := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	for _, page := range append(pages, more...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), match[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, match[1])
			}
		}
	}
}
