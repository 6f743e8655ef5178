package lockfsm

import "testing"

// TestHeldLocksShareAQueue checks for which locks the memory of a queue is saved: those that one
// exclusive request holds, if none has waited. A restored replica does not know that.
func TestHeldLocksShareAQueue(t *testing.T) {
	w := newWorld(t)
	a, b := w.session(1), w.session(2)
	ask := func(n Number, key string, c Command) {
		t.Helper()
		c.Kind, c.Session, c.Epoch, c.Number, c.Key = Acquire, a, 1, n, key
		w.do(c, Granted)
	}
	w.acquire(a, 1, "plain", Granted)
	w.acquire(a, 2, "crowded", Granted)
	w.acquire(b, 1, "crowded", Waiting)
	w.acquire(a, 3, "handed over", Granted)
	w.acquire(b, 2, "handed over", Waiting)
	w.do(Command{Kind: Release, Session: a, Epoch: 1, Number: 3}, Done)
	ask(4, "read", Command{Mode: ModeIS})
	ask(5, "noticed", Command{Notice: true})
	ask(6, "kept", Command{Sticky: true})
	ask(7, "upgradable", Command{Mode: ModeU})
	ask(8, "first of two", Command{Keys: []string{"second of two"}})
	ask(9, "owned", Command{Owner: 1})
	w.do(Command{Kind: Put, Key: "data", Nonce: Nonce{1}, Value: []byte("v")}, Done)
	w.do(Command{Kind: Put, Key: "crowded", Nonce: Nonce{2}, Value: []byte("v")}, Done)
	w.check()
	restored, err := Restore(w.m.Snapshot(nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*Machine{"applied": w.m, "restored": restored} {
		for l := range m.locks.inOrder() { // the request of "plain" is an owner
			if want := l.key == "owned" || l.key == "handed over" && m == restored; l.shared != want {
				t.Errorf("%s: %q shares its queue: %v", name, l.key, l.shared)
			}
		}
	}
	w.do(Command{Kind: Release, Session: a, Epoch: 1, Number: 9}, Done)
	w.acquire(b, 3, "plain", Waiting)
	w.acquire(b, 4, "owned", Granted)
	w.check()
}
