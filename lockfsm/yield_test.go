package lockfsm

import (
	"slices"
	"testing"
)

type yieldOf struct {
	session SessionID
	number  Number
}

func yieldsOf(m *Machine, batch []byte) (all []yieldOf) {
	m.EachYield(batch, func(id SessionID, n Number) { all = append(all, yieldOf{id, n}) })
	return all
}

// TestEachYield checks for which requests a stay must yield. TestTwin checks that a request for
// which a stay must yield is followed by the notice of that stay.
func TestEachYield(t *testing.T) {
	w := newWorld(t)
	w.do(Command{Kind: Stamp, WallUnixMS: 1 << 42}, Done)
	a, b, c := w.session(1), w.session(2), w.session(3)
	of := func(s SessionID, n Number, key string, change func(*Command)) Command {
		c := Command{Kind: Acquire, Session: s, Epoch: 1, Number: n, Key: key}
		if change != nil {
			change(&c)
		}
		return c
	}
	sticky := func(c *Command) { c.Sticky = true }
	shared := func(c *Command) { c.Mode = ModeIS }
	sharedStay := func(c *Command) { sticky(c); shared(c) }
	if got := yieldsOf(w.m, of(b, 1, "x", nil).Append(nil)); got != nil {
		t.Fatalf("%v yields in an empty state", got)
	}
	w.do(of(a, 1, "kept", sticky), Granted)
	w.do(of(a, 2, "read", sharedStay), Granted)
	w.do(of(a, 3, "two", sharedStay), Granted)
	w.do(of(c, 1, "two", sharedStay), Granted)
	w.do(of(a, 4, "held", nil), Granted)
	w.do(of(a, 5, "told", sticky), Granted)
	w.do(of(c, 2, "told", nil), Waiting)

	kept, read := yieldOf{a, 1}, yieldOf{a, 2}
	for what, test := range map[string]struct {
		command Command
		yields  []yieldOf
	}{
		"a kept lock":         {of(b, 1, "kept", nil), []yieldOf{kept}},
		"a kept lock, try":    {of(b, 1, "kept", func(c *Command) { c.Try = true }), []yieldOf{kept}},
		"a kept lock, sticky": {of(b, 1, "kept", sticky), []yieldOf{kept}},
		"a kept lock, shared": {of(b, 1, "kept", shared), []yieldOf{kept}},
		"a reader's, writer":  {of(b, 1, "read", nil), []yieldOf{read}},
		"a reader's, shared":  {of(b, 1, "read", shared), nil},
		"two readers' stays":  {of(b, 1, "two", nil), nil},
		"not a stay":          {of(b, 1, "held", nil), nil},
		"others wait":         {of(b, 1, "told", nil), nil},
		"a free lock":         {of(b, 1, "free", nil), nil},
		"the same session":    {of(a, 9, "kept", nil), nil},
		"a repeated request":  {of(c, 1, "kept", nil), nil},
		"an unknown session":  {of(99, 1, "kept", nil), nil},
		"an earlier epoch":    {of(b, 1, "kept", func(c *Command) { c.Epoch = 0 }), nil},
		"of later rules":      {of(b, 1, "kept", func(c *Command) { c.Rules = RulesVersion + 1 }), nil},
		"a resumed hold":      {of(b, 1, "kept", func(c *Command) { c.Token = 1 }), nil},
		"another kind":        {Command{Kind: Release, Session: b, Epoch: 1, Number: 1}, nil},
		"several keys":        {of(b, 1, "kept", func(c *Command) { c.Keys = []string{"z"} }), nil},
	} {
		for _, key := range []string{"kept", "read"} {
			w.m.locks.byKey[key].first.extra.stay.yields = false
		}
		before := w.m.Snapshot(nil)
		batch := test.command.Append(Command{Kind: Stamp, WallUnixMS: 1}.Append(nil))
		if got := yieldsOf(w.m, batch); !slices.Equal(got, test.yields) {
			t.Errorf("%s: %v yields, want %v", what, got, test.yields)
		}
		if got := yieldsOf(w.m, batch); got != nil {
			t.Errorf("%s, again: %v yields", what, got)
		}
		if got := yieldsOf(w.m, batch[:len(batch)-1]); got != nil {
			t.Errorf("%s, cut off: %v yields", what, got)
		}
		if !slices.Equal(w.m.Snapshot(nil), before) {
			t.Errorf("%s: the state has changed", what)
		}
	}
	w.m.locks.byKey["kept"].first.extra.stay.yields, w.m.locks.byKey["read"].first.extra.stay.yields = false, false
	both := of(b, 2, "read", nil).Append(of(b, 1, "kept", nil).Append(nil))
	if got := yieldsOf(w.m, both); !slices.Equal(got, []yieldOf{kept, read}) {
		t.Errorf("for a batch of two requests, %v yields", got)
	}
	if n := testing.AllocsPerRun(100, func() { w.m.EachYield(both, func(SessionID, Number) {}) }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
	w.do(Command{Kind: Close, Session: a, Epoch: 1}, Done)
	w.do(Command{Kind: Close, Session: c, Epoch: 1}, Done)
	if w.m.sticky != 0 {
		t.Errorf("%d sticky entries are counted when there is none", w.m.sticky)
	}
}
