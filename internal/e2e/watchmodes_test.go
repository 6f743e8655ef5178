package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mortise-lock/mortise"
)

// told returns the events up to the next EventCurrent, as texts, and the position of the last one.
func (f *fleet) told(after uint64) (all []string, position uint64) {
	f.t.Helper()
	for e, err := range f.nodes[1].Watch(f.t.Context(), "", after) {
		switch {
		case err != nil:
			f.t.Fatal(err)
		case e.Kind == mortise.EventCurrent:
			return all, e.Position
		case e.Kind == mortise.EventReset:
			continue
		}
		text := fmt.Sprint(e.Kind, " ", e.Key, " ", e.Mode)
		if e.Tree {
			text += " tree"
		}
		all = append(all, text)
	}
	return all, position
}

// TestEventsHaveModes checks that each event has the mode of the hold after it, that a downgrade
// and an upgrade are events, that a tree has no event at the nodes above, and that the state after
// a reset is in the same words.
func TestEventsHaveModes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		_, at := f.told(0)
		step := func(name string, want ...string) {
			t.Helper()
			var got []string
			if got, at = f.told(at); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		semaphore := f.acquire(0, mortise.Request{Key: "s", Mode: mortise.Permits(2, 5)})
		tree := f.acquire(0, mortise.Request{Key: "t/7/x", Tree: true})
		several := f.acquire(2, mortise.Request{Key: "b", Also: []mortise.Part{{Key: "c", Mode: mortise.Shared}}})
		step("granted", "held s 2 of 5", "held t/7/x exclusive tree", "held b exclusive", "held c shared")
		first := f.acquire(0, mortise.Request{Key: "k"})
		if err := first.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		step("a downgrade", "held k exclusive", "downgraded k shared")
		hold := f.acquire(1, mortise.Request{Key: "u", Mode: mortise.Upgradable})
		up, err := hold.Upgrade(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		step("an upgrade", "held u upgradable", "upgraded u exclusive")
		state := []string{"held b exclusive", "held c shared", "held k shared", "held s 2 of 5",
			"held t/7/x exclusive tree", "held u upgradable", "upgraded u exclusive"}
		got, _ := f.told(0)
		if slices.Sort(got); !slices.Equal(got, state) {
			t.Errorf("the state: %q, want %q", got, state)
		}
		unlock(t, up)
		unlock(t, hold)
		step("the end of an upgrade", "freed u exclusive", "freed u upgradable")
		for _, l := range []*mortise.Lock{first, several, tree, semaphore} {
			unlock(t, l)
		}
		step("released", "freed k shared", "freed b exclusive", "freed c shared", "freed t/7/x exclusive tree",
			"freed s 2 of 5")
		f.nothingLeft()
	})
}
