package lockfsm

import (
	"testing"
	"time"
)

// world is a founded group without a grace. Its revisions are small, so that a fuzzer can guess
// session IDs.
type world struct {
	t testing.TB
	m *Machine
}

func smallCharter() Charter {
	return Charter{Group: 1, FoundedUnixMS: 1, Rules: 1, SessionTTL: 10 * time.Second, Limits: DefaultLimits()}
}

func newWorld(t testing.TB) *world {
	m, err := New(smallCharter())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t, m}
	w.do(Command{Kind: Born}, Done)
	return w
}

func (w *world) do(c Command, want Code) Result {
	w.t.Helper()
	r := w.m.Apply(1, 1, encode(w.t, c))
	if r.Code != want {
		w.t.Fatalf("%+v: %v, want %v", c, r.Code, want)
	}
	return r
}

func (w *world) session(nonce byte) SessionID {
	w.t.Helper()
	id := w.do(Command{Kind: Open, Nonce: Nonce{nonce}, Record: []byte{nonce}}, Done).Session
	w.do(Command{Kind: Attach, Session: id, Epoch: 1, Number: 1, Nonce: Nonce{nonce}}, Done)
	return id
}

func (w *world) acquire(s SessionID, n Number, key string, want Code) Result {
	w.t.Helper()
	return w.do(Command{Kind: Acquire, Session: s, Epoch: 1, Number: n, Key: key}, want)
}

func (w *world) check() {
	w.t.Helper()
	if err := w.m.Check(); err != nil {
		w.t.Fatal(err)
	}
}

// crowded returns a world with two sessions, queues of several entries, and, for each session, one
// lock that only this session holds.
func crowded(t testing.TB) (w *world, a, b SessionID) {
	w = newWorld(t)
	a, b = w.session(1), w.session(2)
	w.acquire(a, 1, "x", Granted)
	w.acquire(b, 1, "x", Waiting)
	w.acquire(a, 2, "x", Waiting)
	w.acquire(b, 2, "x", Waiting)
	w.acquire(b, 3, "y", Granted)
	w.acquire(a, 3, "z", Granted)
	w.check()
	return w, a, b
}

// staying returns a world with a stay, and two shared stays of another key. One request with Try
// waits for the first, and one for the other two.
func staying(t testing.TB) *world {
	w := newWorld(t)
	a, b := w.session(1), w.session(2)
	w.do(Command{Kind: Stamp, WallUnixMS: 1000}, Done)
	w.do(Command{Kind: Acquire, Session: a, Epoch: 1, Number: 1, Key: "x", Sticky: true}, Granted)
	w.do(Command{Kind: Acquire, Session: b, Epoch: 1, Number: 1, Key: "x", Try: true}, Waiting)
	for _, s := range []SessionID{a, b} {
		w.do(Command{Kind: Acquire, Session: s, Epoch: 1, Number: 2, Key: "y", Sticky: true,
			Mode: ModeIS}, Granted)
	}
	w.do(Command{Kind: Acquire, Session: b, Epoch: 1, Number: 3, Key: "y", Try: true}, Waiting)
	w.check()
	return w
}

// withUpgrades returns a world with a granted and a waiting upgrade. Each is before a writer.
func withUpgrades(t testing.TB) *world {
	w := newWorld(t)
	a, b := w.session(1), w.session(2)
	ask := func(s SessionID, n Number, key string, c Command, want Code) {
		c.Kind, c.Session, c.Epoch, c.Number, c.Key = Acquire, s, 1, n, key
		w.do(c, want)
	}
	ask(a, 1, "x", Command{Mode: ModeU}, Granted)
	ask(b, 1, "x", Command{}, Waiting)
	ask(a, 2, "x", Command{Upgrades: true, Owner: 1}, Granted)
	ask(b, 2, "y", Command{Mode: ModeIS}, Granted)
	ask(a, 3, "y", Command{Mode: ModeU}, Granted)
	ask(b, 3, "y", Command{}, Waiting)
	ask(a, 4, "y", Command{Upgrades: true, Owner: 3}, Waiting)
	w.check()
	return w
}

func kinds(t testing.TB) *world {
	w := newWorld(t)
	a, b := w.session(1), w.session(2)
	ask := func(s SessionID, c Command, want Code) {
		c.Kind, c.Session, c.Epoch = Acquire, s, 1
		w.do(c, want)
	}
	ask(a, Command{Number: 1, Key: "r", Mode: ModeIS, Value: []byte("v")}, Granted)
	ask(b, Command{Number: 1, Key: "r", Mode: ModeIS}, Granted)
	ask(a, Command{Number: 2, Key: "r"}, Waiting)
	ask(b, Command{Number: 3, Key: "r", Mode: ModeIS, Owner: 2}, Waiting)
	ask(a, Command{Number: 3, Key: "s", Mode: ModePermits, Permits: 2, Of: 3}, Granted)
	ask(b, Command{Number: 4, Key: "s", Mode: ModePermits, Permits: 2, Of: 3}, Waiting)
	ask(a, Command{Number: 4, Key: "m", Keys: []string{"n", "o"}}, Granted)
	ask(b, Command{Number: 5, Key: "n", Keys: []string{"r", "s"}, Mode: ModeIS, Value: []byte("several")}, Waiting)
	w.check()
	return w
}
