package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// bugs is the page with a row for each bug that the checks have found.
const bugs = "internal/lab/mutants/FOUND.md"

var (
	plantedName = regexp.MustCompile(`\{Name: "([a-z0-9-]+)"`)
	shownBy     = regexp.MustCompile("^`([a-zA-Z0-9./-]+)`, (?:by )?([0-9a-f]{8})$")
)

// plantedNames returns the names of all planted bugs.
func plantedNames(t *testing.T) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "internal", "lab", "mutants", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range plantedName.FindAllSubmatch(text, -1) {
			names[string(match[1])] = true
		}
	}
	return names
}

// bugFaults returns the faults of the tables of bugs: rows that do not say who found the bug and
// what happened, that name neither a test nor a planted bug that exists, or that name no commit. It
// also returns the number of rows.
func bugFaults(page string, tests, planted map[string]bool) (faults []string, rows int) {
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 2 || strings.Contains(line, "---") || strings.TrimSpace(cells[1]) == "found by" {
			continue
		}
		rows++
		if len(cells) != 5 {
			faults = append(faults, fmt.Sprintf("%q has %d cells, want 3", line, len(cells)-2))
			continue
		}
		finder, what := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
		shown := shownBy.FindStringSubmatch(strings.TrimSpace(cells[3]))
		switch {
		case finder == "" || what == "":
			faults = append(faults, fmt.Sprintf("%q: who found it, and what happened?", line))
		case shown == nil:
			faults = append(faults, fmt.Sprintf("%q: what shows it, and which commit mended it?", what))
		case !tests[shown[1]] && !planted[shown[1]]:
			faults = append(faults, fmt.Sprintf("%q: there is no test and no planted bug %s", what, shown[1]))
		}
	}
	return faults, rows
}

func TestBugsAreHeld(t *testing.T) {
	tests, planted := whatIsThere(t).tests, plantedNames(t)
	if len(planted) < 500 {
		t.Fatalf("only %d planted bugs are found", len(planted))
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(bugs)))
	if err != nil {
		t.Fatal(err)
	}
	faults, rows := bugFaults(string(text), tests, planted)
	for _, fault := range faults {
		t.Errorf("%s: %s", bugs, fault)
	}
	if rows < 120 {
		t.Errorf("%s has %d bugs: the rule would pass because it sees nothing", bugs, rows)
	}
	tests, planted = map[string]bool{"session.TestLost": true}, map[string]bool{"stale-ack": true}
	page := func(row string) string { return "| found by | what |\n|---|---|\n" + row + "\n" }
	for _, row := range []string{"| 12 | a lock was lost | `session.TestLost`, 3fd48a7a |",
		"| reader | a lock was lost | `stale-ack`, by 3fd48a7a |"} {
		if faults, rows := bugFaults(page(row), tests, planted); len(faults) > 0 || rows != 1 {
			t.Errorf("a right row: %d rows, %q", rows, faults)
		}
	}
	for what, row := range map[string]string{
		"a test that does not exist":        "| 12 | a lock was lost | `session.TestFound`, 3fd48a7a |",
		"a planted bug that does not exist": "| 12 | a lock was lost | `stale`, 3fd48a7a |",
		"a row without a commit":            "| 12 | a lock was lost | `stale-ack` |",
		"a row without a finder":            "| | a lock was lost | `stale-ack`, 3fd48a7a |",
		"a row that lacks a cell":           "| a lock was lost | `stale-ack`, 3fd48a7a |",
	} {
		if faults, _ := bugFaults(page(row), tests, planted); len(faults) != 1 {
			t.Errorf("%s: %q", what, faults)
		}
	}
}
