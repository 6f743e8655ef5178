package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// threats is the section of docs/ATTACKS.md with the attacks of each party.
const threats = "What an attacker can do"

// attackers are the parties of the trust model. SECURITY.md has a row for each.
var attackers = []string{"stranger", "local user", "guest", "member", "instance", "voter", "operator"}

// boldItem matches an item of a list that begins with its name in bold.
var boldItem = regexp.MustCompile(`^\*\*(.+?)\*\*(.*)$`)

// listItems returns the items of the lists in a section, each in one line, without the dash.
func listItems(section string) (items []string) {
	for line := range strings.Lines(section) {
		switch item, is := strings.CutPrefix(line, "- "); {
		case is:
			items = append(items, strings.TrimSpace(item))
		case strings.HasPrefix(line, "  ") && len(items) > 0:
			items[len(items)-1] += " " + strings.TrimSpace(line)
		}
	}
	return items
}

// saysMore reports whether a text has words besides names of tests.
func saysMore(text string) bool {
	return strings.ContainsFunc(pageTest.ReplaceAllString(text, ""), unicode.IsLetter)
}

// threatFaults returns the faults of the lists of attacks: lists of an unknown attacker, and
// attacks without a result or without a test. It also returns the number of attacks.
func threatFaults(page string) (faults []string, count int) {
	_, section, found := strings.Cut(page, "\n## "+threats+"\n")
	if !found {
		return []string{"there is no section " + threats}, 0
	}
	section, _, _ = strings.Cut(section, "\n## ")
	parties := strings.Split(section, "\n### ")
	if len(listItems(parties[0])) > 0 {
		faults = append(faults, "an attack stands below no attacker")
	}
	for _, list := range parties[1:] {
		who, list, _ := strings.Cut(list, "\n")
		if !slices.Contains(attackers, strings.ToLower(who)) {
			faults = append(faults, fmt.Sprintf("%q is none of %v", who, attackers))
		}
		for _, item := range listItems(list) {
			count++
			switch attack := boldItem.FindStringSubmatch(item); {
			case attack == nil:
				faults = append(faults, fmt.Sprintf("%q does not begin with an attack in bold", item))
			case !saysMore(attack[2]):
				faults = append(faults, fmt.Sprintf("%q: what happens?", attack[1]))
			case !pageTest.MatchString(attack[2]):
				faults = append(faults, fmt.Sprintf("%q: which test shows it?", attack[1]))
			}
		}
	}
	return faults, count
}

func TestAttacksAreShown(t *testing.T) {
	faults, count := threatFaults(readPage(t, "ATTACKS.md"))
	for _, fault := range faults {
		t.Errorf("docs/ATTACKS.md: %s", fault)
	}
	if count < 46 {
		t.Errorf("docs/ATTACKS.md has %d attacks, fewer than 46", count)
	}
	section := func(list string) string { return "\n## " + threats + "\n\nIn short.\n\n" + list }
	for what, list := range map[string]string{
		"an attack without a test":    "### Guest\n\n- **Theft.** Refused. Believe it.\n",
		"an attacker without a name":  "### Mallory\n\n- **Theft.** Refused. `mortise.TestTheft`\n",
		"an attack without an answer": "### Guest\n\n- **Theft.** `mortise.TestTheft`\n",
		"an attack that is not bold":  "### Guest\n\n- Theft. Refused. `mortise.TestTheft`\n",
		"an attack of no party":       "- **Theft.** Refused. `mortise.TestTheft`\n",
	} {
		if faults, _ := threatFaults(section(list)); len(faults) != 1 {
			t.Errorf("%s: %q", what, faults)
		}
	}
	right := section("### Guest\n\n- **Theft\n  by night.** Refused.\n  `mortise.TestTheft`\n" +
		"- **Fraud.** Refused. `mortise.TestFraud`\n")
	if faults, count := threatFaults(right); len(faults) > 0 || count != 2 {
		t.Errorf("a right list: %d attacks, %q", count, faults)
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
