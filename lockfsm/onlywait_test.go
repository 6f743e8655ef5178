package lockfsm

import "testing"

// TestOnlyWait checks for which requests OnlyWait returns true. TestTwin checks that these requests
// only wait.
func TestOnlyWait(t *testing.T) {
	w := newWorld(t)
	a, b := w.session(1), w.session(2)
	of := func(s SessionID, n Number, key string) Command {
		return Command{Kind: Acquire, Session: s, Epoch: 1, Number: n, Key: key}
	}
	w.do(of(a, 1, "held"), Granted)
	w.do(of(a, 2, "queue"), Granted)
	w.do(of(b, 1, "queue"), Waiting)
	readers := of(a, 3, "shared")
	readers.Mode, readers.Permits, readers.Of = ModePermits, 1, 3
	w.do(readers, Granted)
	wants := of(a, 4, "wanted")
	wants.Notice = true
	w.do(wants, Granted)
	w.do(Command{Kind: Stamp, WallUnixMS: 1 << 41}, Done)
	stay := of(a, 5, "kept")
	stay.Sticky = true
	w.do(stay, Granted)
	if w.m.OnlyWait(of(b, 2, "kept").Append(nil), true) {
		t.Error("a request waits for a stay that was not asked to yield")
	}
	stamp := Command{Kind: Stamp, WallUnixMS: 1 << 42}

	with := func(c Command, change func(*Command)) Command { change(&c); return c }
	for what, c := range map[string]struct {
		commands           []Command
		settled, unsettled bool
	}{
		"a free lock":   {commands: []Command{of(b, 2, "free")}},
		"a held lock":   {commands: []Command{of(b, 2, "held")}, settled: true},
		"behind others": {commands: []Command{of(b, 2, "queue")}, settled: true, unsettled: true},
		"two behind others": {commands: []Command{stamp, of(b, 2, "queue"), of(b, 3, "queue")},
			settled: true, unsettled: true},
		"another, too": {commands: []Command{of(b, 2, "queue"), of(b, 3, "free")}},
		"an end, too": {commands: []Command{of(b, 2, "queue"),
			{Kind: Release, Session: a, Epoch: 1, Number: 2}}},
		"room for one more": {commands: []Command{with(of(b, 2, "shared"),
			func(c *Command) { c.Mode, c.Permits, c.Of = ModePermits, 2, 3 })}},
		"no room": {commands: []Command{with(of(b, 2, "shared"),
			func(c *Command) { c.Mode, c.Permits, c.Of = ModePermits, 3, 3 })}, settled: true},
		"a try": {commands: []Command{with(of(b, 2, "queue"),
			func(c *Command) { c.Try = true })}},
		"a bounded queue": {commands: []Command{with(of(b, 2, "queue"),
			func(c *Command) { c.Most = 9 })}},
		"a possible circle": {commands: []Command{with(of(b, 2, "queue"),
			func(c *Command) { c.Owner = 1 })}},
		"several keys": {commands: []Command{with(of(b, 2, "queue"),
			func(c *Command) { c.Keys = []string{"r"} })}},
		"a holder with a notice":      {commands: []Command{of(b, 2, "wanted")}},
		"a stay, which yields":        {commands: []Command{of(b, 2, "kept")}, settled: true},
		"a stay of the same session":  {commands: []Command{of(a, 6, "kept")}},
		"a repeated request":          {commands: []Command{of(b, 1, "queue")}},
		"a request without a session": {commands: []Command{of(77, 1, "queue")}},
		"a request of an earlier epoch": {commands: []Command{with(of(b, 2, "queue"),
			func(c *Command) { c.Epoch = 0 })}},
		"a request under later rules": {commands: []Command{with(of(b, 2, "queue"),
			func(c *Command) { c.Rules = RulesVersion + 1 })}},
		"nothing but the leader's stamp": {commands: []Command{stamp}, settled: true, unsettled: true},
	} {
		var batch []byte
		for _, each := range c.commands {
			batch = each.Append(batch)
		}
		w.m.EachYield(batch, func(SessionID, Number) {})
		if got := w.m.OnlyWait(batch, true); got != c.settled {
			t.Errorf("%s, settled: %v", what, got)
		}
		if got := w.m.OnlyWait(batch, false); got != c.unsettled {
			t.Errorf("%s, not settled: %v", what, got)
		}
		if n := len(batch); n > 0 && w.m.OnlyWait(batch[:n-1], true) {
			t.Errorf("%s, cut off: true", what)
		}
	}
	batch := of(b, 2, "queue").Append(stamp.Append(nil))
	if n := testing.AllocsPerRun(100, func() { w.m.OnlyWait(batch, true) }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}

// TestTriesEndInOneRound ends requests with Try before and behind a sticky request with Try, which
// is granted when the first has ended. Nothing waits for it any more, so it gets no notice and no
// question.
func TestTriesEndInOneRound(t *testing.T) {
	w := newWorld(t)
	w.do(Command{Kind: Stamp, WallUnixMS: 1 << 42}, Done)
	a, b := w.session(1), w.session(2)
	stay := w.do(Command{Kind: Acquire, Session: a, Epoch: 1, Number: 1, Key: "k", Sticky: true, Mode: ModeIS}, Granted)
	for i, c := range []Command{{}, {Mode: ModeIS}, {}, {Mode: ModeIS, Sticky: true}, {}} {
		c.Kind, c.Session, c.Epoch, c.Number, c.Key, c.Try = Acquire, b, 1, Number(i+1), "k", true
		w.do(c, Waiting)
	}
	place := w.m.locks.byKey["k"].boundary.rev
	fired := w.do(Command{Kind: InUse, Session: a, Epoch: 1, Number: 1, Revision: place,
		Token: stay.Token + 1}, Done).Fired
	want := []Number{2, 4, 1, 3, 5}
	for i, c := range fired {
		if len(fired) != len(want) || c.Number != want[i] || (c.Held != nil) != (i > 1) || c.Wanted || c.Asked != 0 {
			t.Fatalf("changed: %+v", fired)
		}
	}
	w.check()
}
