package lockfsm

import (
	"bytes"
	"errors"
	"math"
	"testing"
)

// TestManyPermits checks semaphores with few and with many permits, which entries store in two
// ways.
func TestManyPermits(t *testing.T) {
	for _, each := range []struct{ permits, of uint32 }{
		{255, 300}, {255, math.MaxUint16}, {256, 300}, {256, math.MaxUint16}, {255, math.MaxUint16 + 1},
		{math.MaxUint32, math.MaxUint32},
	} {
		w := newWorld(t)
		a, b := w.session(1), w.session(2)
		ask := func(s SessionID, n Number, permits uint32, want Code) {
			w.do(Command{Kind: Acquire, Session: s, Epoch: 1, Number: n, Key: "k", Keys: []string{"l"}, Mode: ModePermits,
				Permits: permits, Of: each.of}, want)
			w.check()
		}
		ask(a, 1, each.permits, Granted)
		if each.permits < each.of {
			ask(a, 2, each.of-each.permits, Granted)
		}
		ask(b, 1, each.of, Waiting)
		if got := w.m.Entries()[0]; got.Permits != each.permits || got.Of != each.of {
			t.Errorf("%d of %d permits are %d of %d", each.permits, each.of, got.Permits, got.Of)
		}
		w.do(Command{Kind: Release, Session: a, Epoch: 1, Number: 1}, Done)
		if each.permits < each.of {
			w.do(Command{Kind: Release, Session: a, Epoch: 1, Number: 2}, Done)
		}
		w.check()
		if e := w.m.sessions.byID[b].request(1); e.token == 0 {
			t.Errorf("%d permits are not free after their release", each.of)
		}
		if same := w.m.Snapshot(nil); !bytes.Equal(on(t, w.m, RulesVersion).Snapshot(nil), same) {
			t.Errorf("%d of %d permits change by a snapshot", each.permits, each.of)
		}
	}
}

// TestUnequalPartsAreRefused damages a request for many permits of two semaphores, so that its
// parts, which share their rare fields, are unequal in the snapshot.
func TestUnequalPartsAreRefused(t *testing.T) {
	for name, damage := range map[string]func(x *extra){
		"a total":            func(x *extra) { x.of++ },
		"the permits":        func(x *extra) { x.permits++ },
		"resumed in one key": func(x *extra) { x.resumed = true },
	} {
		w := newWorld(t)
		w.do(Command{Kind: Acquire, Session: w.session(1), Epoch: 1, Number: 1, Key: "k", Keys: []string{"l"},
			Mode: ModePermits, Permits: 300, Of: 70_000}, Granted)
		for _, key := range []string{"k", "l"} {
			damaged := on(t, w.m, RulesVersion)
			e := damaged.locks.byKey[key].first
			own := *e.extra
			e.extra = &own
			damage(e.extra)
			if _, err := Restore(damaged.Snapshot(nil)); !errors.Is(err, ErrSnapshot) {
				t.Errorf("%s, %s: %v", name, key, err)
			}
		}
	}
}
