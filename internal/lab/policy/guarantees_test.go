package policy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var promises = regexp.MustCompile(`(?m)^### (\d+)\. (.*)\n(?s:(.*?))(?:^##|\z)`)

// guaranteeFaults returns the promises that are not numbered in order or have no test.
func guaranteeFaults(page string) (faults []string) {
	var sections [][]string
	for rest := page; ; {
		at := promises.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		sections = append(sections, []string{rest[at[2]:at[3]], rest[at[4]:at[5]], rest[at[6]:at[7]]})
		rest = rest[at[7]:]
	}
	if len(sections) < 8 {
		faults = append(faults, fmt.Sprintf("there are %d promises, fewer than the design has", len(sections)))
	}
	for i, s := range sections {
		_, shown, _ := strings.Cut(s[2], "Shown by ")
		if s[0] != strconv.Itoa(i+1) || !pageTest.MatchString(shown) {
			faults = append(faults, fmt.Sprintf("promise %s, %q: is it number %d, and which test shows it?", s[0],
				s[1], i+1))
		}
	}
	return faults
}

func TestGuaranteesAreShown(t *testing.T) {
	page := readPage(t, "GUARANTEES.md")
	k := whatIsThere(t)
	for _, name := range []string{"GUARANTEES.md", "ATTACKS.md"} {
		for _, match := range featureName.FindAllStringSubmatch(readPage(t, name), -1) {
			if named := strings.TrimSuffix(match[1]+"."+match[2], "."); !k.names[named] {
				t.Errorf("docs/%s: the root has no %s", name, named)
			}
		}
	}
	for _, fault := range guaranteeFaults(page) {
		t.Errorf("docs/GUARANTEES.md: %s", fault)
	}
	for what, change := range map[string][2]string{
		"a promise without a test": {"Shown by `internal/lab/e2e.TestFirstComeFirstServed`",
			"Believed of `internal/lab/e2e.TestFirstComeFirstServed`"},
		"a number that is missing": {"### 5. ", "### 6. "},
	} {
		if len(guaranteeFaults(strings.Replace(page, change[0], change[1], 1))) == 0 {
			t.Errorf("the rule does not see %s", what)
		}
	}
}
