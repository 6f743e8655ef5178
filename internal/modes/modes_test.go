package modes

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/lockfsm"
)

func TestTexts(t *testing.T) {
	for text, m := range map[string]Mode{"exclusive": Exclusive, "shared": Shared, "upgradable": Upgradable,
		"2 of 5": Permits(2, 5), "5 of 5": Permits(5, 5), "1 of 1073741824": Permits(1, MaxPermits),
		"1073741824 of 1073741824": Permits(MaxPermits, MaxPermits)} {
		parsed, err := Parse(text)
		if m.Check() != nil || m.Text() != text || err != nil || parsed != m {
			t.Errorf("%q: %q, %v; parsed as %d, %v", text, m.Text(), m.Check(), parsed, err)
		}
	}
	if m, err := Parse("1 of 1"); m != Exclusive || err != nil || Permits(1, 1) != Exclusive {
		t.Errorf("one permit of one: %v, %v", m, err)
	}
	for _, text := range []string{"", "Shared", "0 of 2", "3 of 2", "1 of 1073741825", "1 of", "of 2", "1 of 2 ",
		"+1 of 2", "1  of 2", "-1 of 2", "99999999999999999999 of 2"} {
		if m, err := Parse(text); err == nil {
			t.Errorf("%q is parsed as %q", text, m.Text())
		}
	}
}

// A wrong number makes an invalid mode that names it, and never one of the other modes.
func TestWrongNumbersAreNamed(t *testing.T) {
	numbers := []int{math.MinInt, -1, 0, 1, 2, 5, MaxPermits - 1, MaxPermits, MaxPermits + 1, math.MaxInt}
	for _, bits := range []int{31, 32} {
		numbers = append(numbers, 1<<bits)
	}
	for _, n := range numbers {
		for _, of := range numbers {
			m := Permits(n, of)
			right := 1 <= n && n <= of && of <= MaxPermits
			err := m.Check()
			if right != (err == nil) {
				t.Errorf("Permits(%d, %d): %v", n, of, err)
			}
			if p, total := m.Permits(); right && of > 1 && (p != n || total != of) || (m <= Upgradable) != (n == 1 && of == 1) {
				t.Errorf("Permits(%d, %d) has %d of %d", n, of, p, total)
			}
			if got, ok := strings.CutPrefix(fmt.Sprint(err), "Mode is Permits("); !right &&
				(!ok || 0 <= n && n <= MaxPermits && !strings.HasPrefix(got, fmt.Sprint(n, ","))) {
				t.Errorf("Permits(%d, %d): %v", n, of, err)
			}
		}
	}
	for _, m := range []Mode{3, 7, 1 << 32, permitsBit, math.MaxUint64} {
		if m.Check() == nil {
			t.Errorf("%d is valid", m)
		}
	}
}

const (
	is = lockfsm.ModeIS
	ix = lockfsm.ModeIX
	s  = lockfsm.ModeS
	x  = lockfsm.ModeX
)

// excludes is the table of lockfsm.Mode.
var excludes = map[lockfsm.Mode][]lockfsm.Mode{is: {x}, ix: {s, x}, s: {ix, x}, x: {is, ix, s, x}}

// The mode of a key that is named twice excludes what both exclude, and no other mode with that
// property excludes less.
func TestJoinIsTheWeakest(t *testing.T) {
	all := []lockfsm.Mode{is, ix, s, x}
	for _, a := range all {
		for _, b := range all {
			got := join(a, b)
			need := append(slices.Clone(excludes[a]), excludes[b]...)
			for _, m := range all {
				has := !slices.ContainsFunc(need, func(n lockfsm.Mode) bool { return !slices.Contains(excludes[m], n) })
				if m == got && !has || has && len(excludes[m]) < len(excludes[got]) {
					t.Errorf("%d and %d make %d, and %d excludes what both exclude: %v", a, b, got, m, has)
				}
			}
		}
	}
}

func TestExpand(t *testing.T) {
	part := func(key string) Part { return Part{Key: key} }
	read := func(key string) Part { return Part{Key: key, Mode: Shared} }
	tree := func(p Part) Part { p.Tree = true; return p }
	for name, c := range map[string]struct {
		parts []Part
		want  string
	}{
		"one":                 {[]Part{part("k")}, "[k] [] 0"},
		"shared":              {[]Part{read("k")}, "[k] [] 1"},
		"permits":             {[]Part{{Key: "k", Mode: Permits(2, 5)}}, "[k] [] 2"},
		"upgradable":          {[]Part{{Key: "k", Mode: Upgradable}}, "[k] [4] 0"},
		"twice":               {[]Part{part("b"), part("a"), part("b")}, "[a b] [] 0"},
		"shared and not":      {[]Part{read("b"), part("a")}, "[a b] [0 1] 0"},
		"the same in two":     {[]Part{read("a"), part("a")}, "[a] [] 0"},
		"a root":              {[]Part{tree(part("a"))}, "[a] [] 0"},
		"a read root":         {[]Part{tree(read("a"))}, "[a] [3] 0"},
		"a node":              {[]Part{tree(part("a/b/c"))}, "[a a/b a/b/c] [2 2 0] 0"},
		"siblings":            {[]Part{tree(part("a/b")), tree(part("a/c"))}, "[a a/b a/c] [2 0 0] 0"},
		"siblings, one read":  {[]Part{tree(part("a/b")), tree(read("a/c"))}, "[a a/b a/c] [2 0 3] 0"},
		"read siblings":       {[]Part{tree(read("a/b")), tree(read("a/c"))}, "[a a/b a/c] [1 3 3] 0"},
		"above and below":     {[]Part{tree(part("a")), tree(part("a/b"))}, "[a a/b] [] 0"},
		"read above, written": {[]Part{tree(read("a")), tree(part("a/b"))}, "[a a/b] [] 0"},
		"read above, read":    {[]Part{tree(read("a")), tree(read("a/b"))}, "[a a/b] [3 3] 0"},
		"a key above":         {[]Part{part("a"), tree(part("a/b"))}, "[a a/b] [] 0"},
		"a read key above":    {[]Part{read("a"), tree(part("a/b"))}, "[a a/b] [2 0] 0"},
		"a key and its node":  {[]Part{read("a"), tree(read("a"))}, "[a] [3] 0"},
		"a key below":         {[]Part{tree(read("a")), part("a/b")}, "[a a/b] [3 0] 0"},
	} {
		a := Expand(c.parts)
		if got := fmt.Sprint(a.Keys, " ", a.Modes, " ", a.Permits); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		slices.Reverse(c.parts)
		if got := fmt.Sprint(Expand(c.parts)); got != fmt.Sprint(a) {
			t.Errorf("%s: the order of the parts counts: %s", name, got)
		}
	}
}

// A part enters a hold only if the hold excludes all that a grant of the part would exclude. What a
// set of parts excludes is computed here for every other part, from the table of the modes alone.
func TestCoveredByExcludesAsMuch(t *testing.T) {
	var parts []Part
	for _, key := range []string{"a", "a/b", "a/b/c", "d"} {
		for _, m := range []Mode{Exclusive, Shared} {
			parts = append(parts, Part{key, m, false}, Part{key, m, true})
		}
	}
	grant := func(parts ...Part) map[string]lockfsm.Mode {
		a, all := Expand(parts), map[string]lockfsm.Mode{}
		for i, key := range a.Keys {
			switch {
			case a.Modes != nil:
				all[key] = a.Modes[i]
			case a.Permits != 0:
				all[key] = is
			default:
				all[key] = x
			}
		}
		return all
	}
	conflict := func(a, b map[string]lockfsm.Mode) bool {
		for key, m := range a {
			if o, named := b[key]; named && slices.Contains(excludes[m], o) {
				return true
			}
		}
		return false
	}
	entered := 0
	for _, one := range parts {
		for _, two := range parts {
			held := grant(one, two)
			has := Grant([]Part{one, two})
			for _, asked := range parts {
				if !asked.CoveredBy(&has) {
					continue
				}
				entered++
				// A node excludes the keys below it only for requests with Tree. So only these count here
				// for a part with Tree that may enter the hold of a node above.
				for _, other := range append(parts, Part{"a/x", Exclusive, true}, Part{"a/b/x/y", Shared, true},
					Part{"a/b/x/y", Exclusive, true}) {
					if asked.Tree && !other.Tree && other.Key != "a" {
						continue
					}
					if rival := grant(other); conflict(grant(asked), rival) && !conflict(held, rival) {
						t.Errorf("%+v enters a hold of %+v and %+v, which does not exclude %+v", asked, one, two, other)
					}
				}
			}
			left := has.Lowered(Readers([]Part{one, two}))
			for i, key := range append([]string{has.Key}, has.Keys...) {
				before, _ := has.Mode(key)
				m, _ := left.Mode(key)
				if !before.Covers(m) || m == x || m == ix {
					t.Errorf("%+v and %+v: key %d becomes %d", one, two, i, m)
				}
			}
			before, after := keysOf(&has), keysOf(&left)
			for _, own := range []Part{one, two} {
				if slices.Contains(before, own.Key) != slices.Contains(after, own.Key) {
					t.Errorf("%+v and %+v have the parts %q, and as shared ones %q: events report the difference", one, two,
						before, after)
				}
			}
			for _, own := range []Part{one, two} {
				if own.Mode = Shared; !own.CoveredBy(&left) {
					t.Errorf("%+v and %+v, when both are shared, do not have %+v", one, two, own)
				}
			}
			for _, own := range []Part{one, two} {
				if !own.CoveredBy(&has) {
					t.Errorf("%+v does not enter a hold of %+v and %+v", own, one, two)
				}
			}
		}
	}
	t.Logf("%d cases of %d are covered", entered, len(parts)*len(parts)*len(parts))
}

// keysOf returns the keys of the parts of a hold.
func keysOf(g *lockfsm.Grant) (keys []string) {
	for _, p := range g.Parts() {
		keys = append(keys, p.Key)
	}
	return keys
}
