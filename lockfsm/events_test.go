package lockfsm

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// spelled returns the events after a position as sorted text, since the rules do not define the
// order of the events of one command.
func spelled(t *testing.T, m *Machine, after uint64) (all []string) {
	t.Helper()
	events, upTo, ok := m.Since(after, NewPrefixes(""), eventsKept)
	if !ok || upTo != m.Position() {
		t.Fatalf("the events after %d are missing; the last is %d, these reach to %d", after, m.Position(), upTo)
	}
	for i, e := range events {
		if e.Position != after+uint64(i)+1 {
			t.Fatalf("event %d after %d is at %d", i, after, e.Position)
		}
		text := fmt.Sprintf("%d %q %d by %d", e.What, e.Key, e.Token, e.Cause)
		switch {
		case e.What == Wrote && len(e.How.Data.Value) > 0:
			text += fmt.Sprint(" ", e.How.Data.Revision)
		case e.What == Wrote:
			text += " 0"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// twinHold is a hold of one key in the twin. For data, revision is set.
type twinHold struct {
	key      string
	token    Token
	revision Revision
}

// holds returns a map with all holds and data. A value is true if the session of the hold is
// gone.
func (t *twin) holds() map[twinHold]bool {
	all := map[twinHold]bool{}
	for _, e := range t.entries {
		for _, key := range e.keys {
			if e.token != 0 {
				all[twinHold{key: key, token: e.token}] = t.session(e.session).gone
			}
		}
	}
	for key, d := range t.data {
		all[twinHold{key: key, revision: d.Revision}] = false
	}
	return all
}

func (t *twin) happened(before map[twinHold]bool, by Command) (all []string) {
	cause := map[Kind]Cause{Expire: Expired, Close: Closed, Evict: Evicted, Acquire: Resumed}[by.Kind]
	switch {
	case by.Kind == Detach && len(by.Value) > 0:
		cause = Expired
	case cause == 0:
		cause = Released
	}
	note := func(what EventKind, h twinHold, cause Cause) {
		all = append(all, fmt.Sprintf("%d %q %d by %d", what, h.key, h.token, cause))
	}
	for _, key := range t.valued {
		note(Valued, twinHold{key: key, token: by.Token}, 0)
	}
	if t.lapsed != "" {
		note(Ended, twinHold{key: t.lapsed, token: by.Token}, Expired)
	}
	after := t.holds()
	for h, gone := range before {
		now, there := after[h]
		switch {
		case !there && h.token != 0:
			note(Ended, h, cause)
		case !there && t.data[h.key].Revision == 0:
			all = append(all, fmt.Sprintf("%d %q 0 by 0 0", Wrote, h.key))
		case there && now && !gone:
			note(Left, h, cause)
		}
	}
	for _, h := range slices.Collect(maps.Keys(after)) {
		if _, there := before[h]; !there && h.token != 0 {
			note(Began, h, 0)
		} else if !there {
			all = append(all, fmt.Sprintf("%d %q 0 by 0 %d", Wrote, h.key, h.revision))
		}
	}
	slices.Sort(all)
	return all
}

// TestSinceNeverHasAGap checks that Since returns false if the next event is no longer in the log.
func TestSinceNeverHasAGap(t *testing.T) {
	w := newWorld(t)
	s := w.session(1)
	start := w.m.Position()
	if _, _, ok := w.m.Since(start+1, NewPrefixes(""), 1); ok {
		t.Error("a position in the future is accepted")
	}
	if _, _, ok := w.m.Since(w.m.position(0)-1, NewPrefixes(""), 1); ok {
		t.Error("a position of an earlier group is accepted")
	}
	n := Number(0)
	lock := func() {
		n++
		key := []string{"a/x", "b/x"}[n%2]
		w.acquire(s, n, key, Granted)
		w.do(Command{Kind: Release, Session: s, Epoch: 1, Number: n}, Done)
	}
	for range eventsKept/2 - 1 {
		lock()
	}
	events, upTo, ok := w.m.Since(start, NewPrefixes("a/"), 10)
	if !ok || len(events) != 10 || upTo >= w.m.Position() || events[9].Position > upTo {
		t.Fatalf("%d events up to %d, %v", len(events), upTo, ok)
	}
	all := events
	for upTo < w.m.Position() {
		if events, upTo, ok = w.m.Since(upTo, NewPrefixes("a/"), 10); !ok || len(events) > 10 {
			t.Fatalf("%d events up to %d, %v", len(events), upTo, ok)
		}
		all = append(all, events...)
	}
	for i, e := range all {
		want := []EventKind{Began, Ended}[i%2]
		if e.Key != "a/x" || e.What != want || i > 0 && e.Position <= all[i-1].Position {
			t.Fatalf("event %d: %+v", i, e)
		}
	}
	if len(all) != (eventsKept/2-1)/2*2 {
		t.Errorf("%d events of a/", len(all))
	}
	lock()
	if _, _, ok := w.m.Since(start, NewPrefixes(""), 1); !ok {
		t.Error("the oldest event that fits is missing")
	}
	lock()
	if _, _, ok := w.m.Since(start, NewPrefixes(""), 1); ok {
		t.Error("an event was dropped, and Since does not report it")
	}
	restored := again(t, w.m)
	if _, _, ok := restored.Since(w.m.Position()-1, NewPrefixes(""), 1); ok || restored.Position() != w.m.Position() {
		t.Error("a restored machine claims to have the events before its snapshot")
	}
	if events, _, ok := restored.Since(w.m.Position(), NewPrefixes(""), 1); !ok || len(events) > 0 {
		t.Error("a restored machine does not continue at its position")
	}
}

// TestEndsAreBounded checks that Ends returns the last 256 events in order, also after a restore.
func TestEndsAreBounded(t *testing.T) {
	w := newWorld(t)
	for i := range endsKept + 10 {
		s := w.session(1)
		w.acquire(s, 1, "k", Granted)
		w.do(Command{Kind: Expire, Session: s, Term: 1}, Done)
		if got := len(w.m.Ends()); got != min(i+1, endsKept) {
			t.Fatalf("%d ends after %d", got, i+1)
		}
	}
	ends := w.m.Ends()
	for i, e := range ends {
		if e.Cause != Expired || e.What != Ended || i > 0 && e.Position != ends[i-1].Position+2 {
			t.Fatalf("end %d: %+v", i, e)
		}
	}
	if ends[endsKept-1].Position != w.m.Position() {
		t.Error("the last one is not the last")
	}
	if got := again(t, w.m).Ends(); fmt.Sprint(got) != fmt.Sprint(ends) {
		t.Errorf("restored: %v\nwant %v", got, ends)
	}
}
