package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// threats is the section of docs/GUARANTEES.md with a row for each attack.
const threats = "What an attacker can do"

// attackers are the parties of the trust model. SECURITY.md has a row for each.
var attackers = []string{"stranger", "local user", "guest", "member", "instance", "voter", "operator"}

// threatFaults returns the faults of the table of attacks: rows with an unknown attacker, without a
// result, or without a test. It also returns the number of rows.
func threatFaults(page string) (faults []string, rows int) {
	_, section, found := strings.Cut(page, "\n## "+threats+"\n")
	if !found {
		return []string{"there is no section " + threats}, 0
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 2 || strings.Contains(line, "---") || strings.TrimSpace(cells[1]) == "attack" {
			continue
		}
		rows++
		attack := strings.TrimSpace(cells[1])
		if len(cells) != 6 {
			faults = append(faults, fmt.Sprintf("%q has %d cells, want 4", attack, len(cells)-2))
			continue
		}
		for who := range strings.SplitSeq(cells[2], ",") {
			if who = strings.TrimSpace(who); !slices.Contains(attackers, who) {
				faults = append(faults, fmt.Sprintf("%q can be tried by %q, which is none of %v", attack, who,
					attackers))
			}
		}
		if strings.TrimSpace(cells[3]) == "" {
			faults = append(faults, fmt.Sprintf("%q: what happens?", attack))
		}
		if !pageTest.MatchString(cells[4]) {
			faults = append(faults, fmt.Sprintf("%q: which test shows it?", attack))
		}
	}
	return faults, rows
}

func TestAttacksAreShown(t *testing.T) {
	faults, rows := threatFaults(readPage(t, "GUARANTEES.md"))
	for _, fault := range faults {
		t.Errorf("docs/GUARANTEES.md: %s", fault)
	}
	if rows < 30 {
		t.Errorf("docs/GUARANTEES.md has %d attacks: the rule would pass because it sees nothing", rows)
	}
	for what, row := range map[string]string{
		"an attack without a test":    "| theft | guest | refused | believe it |",
		"an attacker without a name":  "| theft | mallory | refused | `mortise.TestTheft` |",
		"an attack without an answer": "| theft | guest | | `mortise.TestTheft` |",
		"a row that lacks a cell":     "| theft | guest | `mortise.TestTheft` |",
	} {
		if faults, _ := threatFaults("\n## " + threats + "\n" + row + "\n"); len(faults) != 1 {
			t.Errorf("%s: %q", what, faults)
		}
	}
	if faults, rows := threatFaults("\n## " + threats +
		"\n| theft | guest, member | refused | `mortise.TestTheft` |\n"); len(faults) > 0 || rows != 1 {
		t.Errorf("a right row: %d rows, %q", rows, faults)
	}
}

func TestSecurityPageKnowsTheParties(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, who := range attackers {
		if !strings.Contains(strings.ToLower(page), "\n| **"+who+"**") {
			t.Errorf("SECURITY.md has no row for %q", who)
		}
	}
	for _, fault := range pageFaults(page, whatIsThere(t), true) {
		t.Errorf("SECURITY.md: %s", fault)
	}
}

var bareTest = regexp.MustCompile(`\bTest[A-Z]\w*`)

// The page names tests as arguments for go test -run, so the beginning of a name is sufficient.
func TestCorrectnessNamesTests(t *testing.T) {
	k := whatIsThere(t)
	exists := func(name string) bool {
		for test := range k.tests {
			if _, bare, _ := strings.Cut(test, "."); strings.HasPrefix(bare, name) {
				return true
			}
		}
		return false
	}
	for _, name := range bareTest.FindAllString(readPage(t, "CORRECTNESS.md"), -1) {
		if !exists(name) {
			t.Errorf("docs/CORRECTNESS.md: there is no test %s", name)
		}
	}
	if exists("TestThatNobodyWrote") {
		t.Error("the rule does not see a test that is missing")
	}
}
