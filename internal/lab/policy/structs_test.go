package policy

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/uses"
)

// mostFields is the largest number of fields of a type. A type with more has parts that should be
// types of their own.
const mostFields = 30

// wide are the types that have more fields, and why.
var wide = map[string]string{
	".Config":                 "all settings of an instance",
	".Status":                 "a report: all its fields are for the reader",
	"internal/lab/sim.Config": "all options of a run",
	"internal/lab/sim.Stats":  "a report",
	"lockfsm.Command":         "one message; each kind uses some of its fields",
	"lockfsm.view":            "what a query reads of a machine, with its events",
}

// scattered is how many fields of each package are written in three or more files. A figure may
// only decrease.
var scattered = map[string]int{
	"": 3, "cluster": 1, "internal/history": 1, "internal/lab/proctest/attack/attackers": 3,
	"internal/lab/sim": 5, "internal/trace": 1, "lockfsm": 19, "raftlog": 4, "session": 1,
	"session/client": 6, "session/keeper": 1, "session/stay": 1, "transport": 1,
}

// A field that many files write has a meaning that no file shows.
func TestStructsAreReadable(t *testing.T) {
	found, err := uses.StructsOf(root, "./...")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		s := found[dir]
		for name, n := range s.Widths {
			full := strings.TrimPrefix(dir+"."+name, "/")
			switch {
			case n > mostFields && wide[full] == "":
				t.Errorf("%s has %d fields, at most %d may be in one type: make a type of those that belong together",
					full, n, mostFields)
			case n > mostFields:
				seen[full] = true
			}
		}
		if all := s.Writers.Scattered(3); len(all) != scattered[dir] {
			t.Errorf("/%s: %d fields are written in three or more files, and the list says %d: %v", dir, len(all),
				scattered[dir], all)
		}
	}
	for full := range wide {
		if !seen[full] {
			t.Errorf("%s has at most %d fields, or is gone: remove it from wide", full, mostFields)
		}
	}
}
