package e2e

import (
	"fmt"
	"maps"
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

// nested returns every request for a and a/b, in each mode, with and without Tree.
func nested() (all []mortise.Request) {
	ways := []mortise.Part{{}, {Tree: true}, {Mode: mortise.Shared}, {Mode: mortise.Shared, Tree: true}}
	for _, above := range ways {
		for _, below := range ways {
			below.Key = "a/b"
			all = append(all, mortise.Request{Key: "a", Mode: above.Mode, Tree: above.Tree, Also: []mortise.Part{below}})
		}
	}
	return all
}

// TestWatchIsTheStateAfterADowngrade holds a key and one below it, makes the hold shared, and
// unlocks it. After each step, the events add up to the parts that Peek shows. A key whose
// downgrade leaves it above a tree is held until the hold ends: it is in the events, and no writer
// gets it.
func TestWatchIsTheStateAfterADowngrade(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 2)
		position := uint64(0)
		for _, r := range nested() {
			held := map[string]mortise.Part{}
			check := func(step string) {
				t.Helper()
				for e, err := range f.nodes[1].Watch(brief(t), "", position) {
					if err != nil {
						t.Fatal(err)
					}
					if e.Position != 0 {
						position = e.Position
					}
					switch e.Kind {
					case mortise.EventHeld, mortise.EventDowngraded:
						held[e.Key] = e.Part
					case mortise.EventFreed:
						delete(held, e.Key)
					}
					if e.Kind == mortise.EventCurrent {
						break
					}
				}
				shown := map[string]mortise.Part{}
				for _, key := range []string{"a", "a/b"} {
					for _, s := range f.peek(1, key).Queue {
						for _, p := range append(s.Also, s.Part) {
							shown[p.Key] = p
						}
					}
				}
				if !maps.Equal(held, shown) {
					t.Errorf("%+v, %s: the events say %+v, Peek %+v", r, step, held, shown)
				}
			}
			l := f.acquire(0, r)
			check("granted")
			if err := l.Downgrade(brief(t)); err != nil {
				t.Fatal(err)
			}
			check("shared")
			if free := f.tries(1, mortise.Request{Key: "a"}, mortise.Request{Key: "a/b"}); free[0] || free[1] {
				t.Errorf("%+v: when it is shared, a writer gets a and a/b: %v", r, free)
			}
			check("tried")
			unlock(t, l)
			check("unlocked")
			if len(held) != 0 {
				t.Errorf("%+v: never reported free: %v", r, held)
			}
		}
	})
}
