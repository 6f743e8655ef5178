package lockfsm

import (
	"slices"
	"strings"
	"testing"
)

// held are requests of every kind, over the nodes of one tree and a key beside it. The request of a
// path is in the form that package mortise gives it.
func held() (all []Command) {
	path := func(node string, above, mode Mode) Command {
		c, modes := Command{}, []Mode{mode}
		keys := []string{node}
		for i, r := range node {
			if r == '/' {
				keys = append(keys[:len(keys)-1], node[:i], node)
				modes = append([]Mode{above}, modes...)
			}
		}
		c.Key, c.Keys = keys[0], keys[1:]
		c.setModes(modes)
		return c
	}
	for _, node := range []string{"t", "t/7", "t/7/o", "t/7/p", "t/8"} {
		all = append(all, path(node, ModeIX, ModeX), path(node, ModeIS, ModeS))
	}
	for _, keys := range [][]string{{"t"}, {"t/7"}, {"u"}, {"t", "t/7"}, {"t", "u"}} {
		all = append(all, Command{Key: keys[0], Keys: keys[1:]}, Command{Key: keys[0], Keys: keys[1:], Mode: ModeIS})
	}
	return append(all, Command{Key: "t", Mode: ModeU},
		Command{Key: "t", Mode: ModePermits, Permits: 1, Of: 2}, Command{Key: "t", Mode: ModePermits, Permits: 2, Of: 2},
		Command{Key: "t", Mode: ModePermits, Permits: 1, Of: 65_536})
}

func (c Command) asked() *Grant {
	g := c.Asked()
	return &g
}

func granted(t *testing.T, c Command) *world {
	w := newWorld(t)
	c.Kind, c.Session, c.Epoch, c.Number = Acquire, w.session(1), 1, 1
	w.do(c, Granted)
	return w
}

// TestCoversIsWhatTheQueuesExclude compares Covers with the machine, for every mode of a hold and
// of an entering request: the hold must exclude every third request that a grant of the entering
// request would exclude. If it does, the hold covers the request, unless permits are counted.
func TestCoversIsWhatTheQueuesExclude(t *testing.T) {
	all := []Command{{Key: "t", Mode: ModePermits, Permits: 1, Of: 2}, {Key: "t", Mode: ModePermits, Permits: 2, Of: 2},
		{Key: "t", Mode: ModePermits, Permits: 1, Of: 65_536}}
	for mode := range ModePermits {
		all = append(all, Command{Key: "t", Mode: mode})
	}
	excludes := make([][]bool, len(all))
	for i, hold := range all {
		for _, third := range all {
			w := granted(t, hold)
			third.Kind, third.Session, third.Epoch, third.Number, third.Try = Acquire, w.session(2), 1, 1, true
			var r Result
			w.m.ApplyEntry(2, 1, third.Append(nil), func(got *Result) { r = got.Clone() })
			excludes[i] = append(excludes[i], r.Code == Held)
		}
	}
	for i, hold := range all {
		for j, want := range all {
			counts, misses := hold.Mode == ModePermits || want.Mode == ModePermits, -1
			for k := range all {
				if excludes[j][k] && !excludes[i][k] {
					misses = k
				}
			}
			if got := hold.Mode.Covers(want.Mode); got != (!counts && misses < 0) {
				t.Errorf("mode %d covers %d: %v; permits count: %v; it does not exclude %d", hold.Mode, want.Mode, got, counts,
					misses)
			}
		}
	}
}

func spelledOut(c Command) string { return strings.TrimPrefix(included(c.asked()), ", includes ") }

// TestAResumedHoldIsWhatWasGranted resumes a hold of every kind by each of its keys, also after it
// was made shared. The grant must include what the first request asked for, or less.
func TestAResumedHoldIsWhatWasGranted(t *testing.T) {
	for _, c := range held() {
		if c.asked().Upgradable() {
			continue // cannot be resumed
		}
		for _, by := range append([]string{c.Key}, c.Keys...) {
			for _, lowers := range []bool{false, true} {
				w := granted(t, c)
				want, third := c.asked(), w.session(3)
				if e := w.m.locks.byKey[c.Key].first; lowers {
					if w.m.Apply(2, 1, encode(t, Command{Kind: Downgrade, Session: e.session.id, Epoch: 1,
						Number: 1, Modes: want.Readers(false)})).Code != Downgraded {
						if !want.Semaphore() {
							t.Errorf("%s is not made shared", spelledOut(c))
						}
						continue
					}
					want = &Grant{Key: c.Key, Keys: c.Keys, Permits: 1}
				}
				r := w.do(Command{Kind: Acquire, Session: third, Epoch: 1, Number: 1, Key: by,
					Token: w.m.locks.byKey[c.Key].first.token},
					Granted)
				if g := r.Grant; g == nil || !g.same(want) {
					t.Errorf("%s, resumed by %s: got %s", spelledOut(c), by, included(g))
				}
				w.check()
			}
		}
	}
}

// same reports whether two grants include the same.
func (g *Grant) same(o *Grant) bool {
	if g.Semaphore() || o.Semaphore() {
		return g.Key == o.Key && g.Permits == o.Permits && g.Of == o.Of && g.Semaphore() && o.Semaphore()
	}
	return g.Key == o.Key && slices.Equal(g.Keys, o.Keys) && slices.Equal(g.modes(), o.modes())
}

func (g *Grant) modes() (all []Mode) {
	for i := range 1 + len(g.Keys) {
		all = append(all, g.mode(i))
	}
	return all
}
