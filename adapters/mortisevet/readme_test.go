package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/adapters/mortisevet/rules"
)

// TestTheReadmeShowsJudgedCode checks that the README has a wrong and a right example of each rule,
// and that each is a part of the rule's programs. The tests of package rules judge these.
func TestTheReadmeShowsJudgedCode(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := regexp.MustCompile(`(?m)^\*\*(\w+)\*\*: `).Split(string(page), -1)
	names := regexp.MustCompile(`(?m)^\*\*(\w+)\*\*: `).FindAllStringSubmatch(string(page), -1)
	if len(names) != len(rules.All()) {
		t.Fatalf("the README has the rules %q", names)
	}
	block := regexp.MustCompile("(?s)```golang\n// (wrong|right)[^\n]*\n(.*?)```")
	for i, a := range rules.All() {
		if names[i][1] != a.Name {
			t.Errorf("the README has %s in the place of %s", names[i][1], a.Name)
		}
		seen := ""
		for _, m := range block.FindAllStringSubmatch(parts[i+1], -1) {
			seen += m[1] + " "
			code, err := os.ReadFile("rules/testdata/src/" + a.Name + "/" + m[1] + ".go")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(plain(string(code)), plain(m[2])) {
				t.Errorf("this code of %s is not in %s.go of its programs:\n%s", a.Name, m[1], m[2])
			}
			if m[1] == "wrong" && !strings.Contains(string(code), "// want") {
				t.Errorf("no program of %s is wrong", a.Name)
			}
		}
		if seen != "wrong right " {
			t.Errorf("the README shows %q of %s", seen, a.Name)
		}
	}
}

// plain removes indentation and the comments that expect a report.
func plain(code string) string {
	var b strings.Builder
	for line := range strings.Lines(regexp.MustCompile(` // want .*`).ReplaceAllString(code, "")) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}
