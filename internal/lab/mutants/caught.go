package mutants

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Catcher is the test that caught a bug when the bug was switched on last.
type Catcher struct {
	Layer, Test string
	Seed        string // empty if the test has no seeds
}

// caught has a line for each bug that scripts/planted -record has seen: the bug, the layer and the
// test that caught it, and the seed if the test runs seeds.
const caught = "caught.txt"

// Catchers returns the recorded catchers by the names of their bugs. A test of this package fails
// if a bug that CI runs has none, if a catcher no longer exists, or if no merge runs it.
func Catchers() map[string]Catcher {
	all := map[string]Catcher{}
	text, _ := edits.ReadFile(caught) // it is embedded
	for line := range strings.Lines(string(text)) {
		if cells := strings.Fields(line); len(cells) >= 3 {
			c := Catcher{Layer: cells[1], Test: cells[2]}
			if len(cells) > 3 {
				c.Seed = cells[3]
			}
			all[cells[0]] = c
		}
	}
	return all
}

// Record returns the text of caught.txt for the given catchers.
func Record(all map[string]Catcher) string {
	var text strings.Builder
	for _, bug := range slices.Sorted(maps.Keys(all)) {
		c := all[bug]
		fmt.Fprintln(&text, strings.TrimSpace(strings.Join([]string{bug, c.Layer, c.Test, c.Seed}, " ")))
	}
	return text.String()
}

// Alone returns the arguments and the variables with which the layer's test binary runs a catcher,
// and of its seeds the one that caught the bug.
func (l Layer) Alone(c Catcher) (args, env []string) {
	run := "^" + c.Test + "$"
	if c.Seed != "" {
		switch {
		case l.Name == "rules" && c.Test == "TestTwin":
			run += "/^seed=" + c.Seed + "$"
		case l.Name == "leases":
			env = []string{"MORTISE_SEED=" + c.Seed}
		case l.Name == "birth" || l.Name == "durable":
			args = []string{"-birth.seed=" + c.Seed}
		}
	}
	return append(args, "-test.run", run), env
}
