package house

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The two files by which a room takes part in internal/planted. They are the only place of a core that may read the environment and hold
// a variable, and only with the build tag: so they are the same in every room, to the letter.
const (
	bugOff = `//go:build !planted

package NAME

// bug reports whether a planted bug is switched on, see internal/planted. Without the build tag it is constant: it costs nothing.
func bug(string) bool { return false }
`
	bugOn = `//go:build planted

package NAME

import "os"

// planted is the one bug that is switched on, read once.
var planted = os.Getenv("MORTISE_BUG")

// bug reports whether a planted bug is switched on, see internal/planted.
func bug(name string) bool { return name == planted }
`
)

// plants reports whether a file has the name of one of the two, and whether it is that file.
func (s source) plants() (named, alike bool) {
	want, named := map[string]string{"bug.go": bugOff, "bug_planted.go": bugOn}[s.path[strings.LastIndex(s.path, "/")+1:]]
	if !named {
		return false, false
	}
	text, err := os.ReadFile(filepath.Join(root, s.path))
	return true, err == nil && string(text) == strings.ReplaceAll(want, "NAME", s.file.Name.Name)
}

// exempt reports whether the rules for cores and for state do not hold for a file.
func (s source) exempt() bool {
	_, alike := s.plants()
	return alike
}

func TestPlantedBugsNeedTwoFilesAndNoMore(t *testing.T) {
	_, files := sources(t)
	pairs := map[string]int{}
	for _, s := range files {
		named, alike := s.plants()
		if named && !alike {
			t.Errorf("%s differs from what stands in internal/house: the two files of a planted bug are the same in every room", s.path)
		}
		if named {
			pairs[s.room]++
			continue
		}
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//go:build") && strings.Contains(c.Text, "planted") {
					t.Errorf("%s: only bug.go and bug_planted.go depend on the tag planted; ask bug(name) at the place of the rule", s.path)
				}
			}
		}
	}
	for room, n := range pairs {
		if n != 2 {
			t.Errorf("the room %q has only one of bug.go and bug_planted.go", room)
		}
	}
	if len(pairs) < 5 {
		t.Errorf("only %d rooms have planted bugs: the rule would pass because it sees nothing", len(pairs))
	}
}
