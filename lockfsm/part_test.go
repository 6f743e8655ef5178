package lockfsm

import (
	"fmt"
	"slices"
	"testing"
)

// TestPartsAreWhatWasAskedFor checks that nodes above others are no parts, and that all other keys
// are parts with the mode that their caller has named.
func TestPartsAreWhatWasAskedFor(t *testing.T) {
	type keys = []string
	type modes = []Mode
	for _, c := range []struct {
		grant Grant
		want  []string
	}{
		{Grant{Key: "a"}, keys{"a X"}},
		{Grant{Key: "a", Keys: keys{"b"}, Permits: 1}, keys{"a IS", "b IS"}},
		{Grant{Key: "a", Permits: 2, Of: 5}, keys{"a 2 of 5"}},
		{Grant{Key: "a", Permits: 1, Of: 65_536}, keys{"a 1 of 65536"}}, // the permits of an intention
		{Grant{Key: "a", Modes: modes{ModeU}}, keys{"a U"}},
		{Grant{Key: "a", Modes: modes{ModeS}}, keys{"a S tree"}},
		{Grant{Key: "a", Keys: keys{"a/b", "a/b/c"}, Modes: modes{ModeIX, ModeIX, ModeX}}, keys{"a/b/c X tree"}},
		{Grant{Key: "a", Keys: keys{"a/b", "a/b/c"}, Modes: modes{ModeIS, ModeIS, ModeS}}, keys{"a/b/c S tree"}},
		{Grant{Key: "a", Keys: keys{"a-b", "a/b", "b"}, Modes: modes{ModeIX, ModeIS, ModeX, ModeIS}},
			keys{"a-b IS", "a/b X tree", "b IS"}},
		{Grant{Key: "a", Keys: keys{"a/b", "a/b/c", "a/d"}, Modes: modes{ModeIX, ModeX, ModeX, ModeIX}},
			keys{"a/b X tree", "a/b/c X tree"}},
		{Grant{Key: "a", Keys: keys{"a/b", "c"}, Modes: modes{ModeX, ModeX, ModeIS}}, keys{"a X", "a/b X", "c IS"}},
		{Grant{Key: "a", Keys: keys{"a/b", "a/b/c"}, Modes: modes{ModeIS, ModeX, ModeS}}, keys{"a/b X", "a/b/c S tree"}},
		{Grant{Key: "a", Keys: keys{"a/b"}, Modes: modes{ModeIS, ModeX}}, keys{"a IS", "a/b X"}},
	} {
		var got []string
		for _, p := range c.grant.Parts() {
			text := map[Mode]string{ModeX: "X", ModeIS: "IS", ModeS: "S", ModeU: "U"}[p.Mode]
			if p.Of != 0 {
				text = fmt.Sprintf("%d of %d", p.Permits, p.Of)
			}
			if p.Tree {
				text += " tree"
			}
			got = append(got, p.Key+" "+text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.grant, got, c.want)
		}
	}
}
