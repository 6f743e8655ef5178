package lockfsm

import (
	"bytes"
	"testing"
)

// ends makes n sessions with the given rights, numbered from `first`, whose holds expire.
func (w *world) ends(rights string, first, n int) {
	w.t.Helper()
	for i := first; i < first+n; i++ {
		nonce := Nonce{byte(i), byte(i >> 8), 1}
		s := w.do(Command{Kind: Open, Nonce: nonce, Rights: rights}, Done).Session
		w.do(Command{Kind: Attach, Session: s, Epoch: 1, Number: 1, Nonce: nonce}, Done)
		w.acquire(s, 1, "k", Granted)
		w.do(Command{Kind: Expire, Session: s, Term: 1}, Done)
	}
}

// parts counts the events of each party.
func (w *world) parts() map[party]int {
	w.t.Helper()
	count := map[party]int{}
	for _, end := range w.m.history.audit.ends {
		count[end.of]++
	}
	for of, n := range w.m.history.audit.parts {
		if *n != count[of] {
			w.t.Errorf("party %v has %d events, counted %d", of, count[of], *n)
		}
	}
	for _, end := range w.m.history.audit.ends {
		if end.part != w.m.history.audit.parts[end.of] {
			w.t.Errorf("an event of party %v has the count of another one", end.of)
		}
	}
	return count
}

// A capability whose holds end without limit leaves half of the log to another one, and each of
// three has a third. A replica that was restored in between keeps the same events.
func TestEachCapabilityHasAPartOfTheAuditLog(t *testing.T) {
	w := newWorld(t)
	w.ends("", 0, 200)
	last := w.m.Ends()[199].Position
	w.ends(rightsText("lock k"), 1000, 1000)
	if p := w.parts(); p[party{}] != 128 || len(p) != 2 {
		t.Errorf("beside a busy capability: %v", p)
	}
	kept := false
	for _, e := range w.m.Ends() {
		kept = kept || e.Position == last
	}
	if !kept {
		t.Error("the last event of the quiet party is gone")
	}
	twin := &world{t, again(t, w.m)}
	for _, each := range []*world{w, twin} {
		each.ends(rightsText("lock *"), 3000, 500)
		p := each.parts()
		for of, n := range p {
			if n < 85 || n > 86 {
				t.Errorf("three parties: %d of %x", n, of[:4])
			}
		}
		all := each.m.Ends()
		if len(p) != 3 || len(all) != endsKept {
			t.Errorf("%d parties with %d events", len(p), len(all))
		}
		for i, e := range all[1:] {
			if e.Position <= all[i].Position {
				t.Fatalf("event %d is older than the one before", i+1)
			}
		}
	}
	if !bytes.Equal(w.m.Snapshot(nil), twin.m.Snapshot(nil)) {
		t.Error("a restored replica has another audit log")
	}
}
