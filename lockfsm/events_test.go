package lockfsm

import (
	"fmt"
	"slices"
	"strings"
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
		text := fmt.Sprintf("%d %q %d by %d%s", e.What, e.Key, e.Token, e.Cause, spelledPart(&e))
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

func spelledPart(e *Event) string {
	text := ""
	switch {
	case e.What == Wrote:
	case e.Of != 0:
		text = fmt.Sprintf(" %d of %d", e.Permits, e.Of)
	default:
		text = " " + map[Mode]string{ModeX: "X", ModeIS: "shared", ModeS: "shared", ModeU: "U"}[e.Mode]
	}
	if e.Tree {
		text += " tree"
	}
	return text
}

// twinHold is a hold of one key in the twin. For data, revision is set.
type twinHold struct {
	key      string
	token    Token
	revision Revision
}

type twinState struct {
	gone     bool // the session of the hold is gone
	upgrades bool
	part     string // as spelledPart
}

// holds returns a map with all holds and data.
func (t *twin) holds() map[twinHold]twinState {
	all := map[twinHold]twinState{}
	for _, e := range t.entries {
		for _, key := range e.keys {
			if part := e.part(key); e.token != 0 && part != "" {
				all[twinHold{key: key, token: e.token}] = twinState{t.session(e.session).gone, e.hold != 0, part}
			}
		}
	}
	for key, d := range t.data {
		all[twinHold{key: key, revision: d.Revision}] = twinState{}
	}
	return all
}

// part spells how e locks a key. It returns "" for an intention.
func (e twinEntry) part(key string) string {
	i := slices.Index(e.keys, key)
	at := func(key string) (Mode, bool) {
		i := slices.Index(e.keys, key)
		return e.modes[max(i, 0)], i >= 0
	}
	below := func(o string) bool {
		if m, _ := at(o); m != ModeS || !strings.HasPrefix(o, key+"/") {
			return false
		}
		for ; o != key; o = o[:strings.LastIndex(o, "/")] {
			if !slices.Contains(e.keys, o) {
				return false
			}
		}
		return true
	}
	switch m := e.modes[i]; {
	case m == ModePermits:
		return fmt.Sprintf(" %d of %d", e.shares[i].permits, e.shares[i].of)
	case m == ModeS:
		return " shared tree"
	case m == ModeIX, m == ModeIS && slices.ContainsFunc(e.keys, below):
		return ""
	case m == ModeIS:
		return " shared"
	case m == ModeU:
		return " U"
	}
	for above := key; strings.Contains(above, "/"); {
		above = above[:strings.LastIndex(above, "/")]
		if m, is := at(above); !is || m != ModeX && m != ModeIX {
			break
		} else if m == ModeIX {
			return " X tree"
		}
	}
	return " X"
}

func (t *twin) happened(before map[twinHold]twinState, by Command) (all []string) {
	cause := map[Kind]Cause{Expire: Expired, Close: Closed, Evict: Evicted, Acquire: Resumed}[by.Kind]
	switch {
	case by.Kind == Detach && len(by.Value) > 0:
		cause = Expired
	case by.Kind == Expire && by.Cause != 0:
		cause = by.Cause
	case cause == 0:
		cause = Released
	}
	note := func(what EventKind, h twinHold, cause Cause, part string) {
		all = append(all, fmt.Sprintf("%d %q %d by %d%s", what, h.key, h.token, cause, part))
	}
	after := t.holds()
	for _, key := range t.valued {
		if h := (twinHold{key: key, token: by.Token}); after[h].part != "" {
			note(Valued, h, 0, after[h].part)
		}
	}
	if t.lapsed != "" {
		kept := t.find(by.Session, by.Number)
		note(Ended, twinHold{key: t.lapsed, token: by.Token}, Expired, kept.part(t.lapsed))
	}
	for h, was := range before {
		now, there := after[h]
		switch {
		case !there && h.token != 0:
			note(Ended, h, cause, was.part)
		case !there && t.data[h.key].Revision == 0:
			all = append(all, fmt.Sprintf("%d %q 0 by 0 0", Wrote, h.key))
		case there && now.gone && !was.gone:
			note(Left, h, cause, now.part)
		case there && now.part != was.part:
			note(Lowered, h, 0, now.part)
		}
	}
	for h, now := range after {
		if _, there := before[h]; !there && h.token != 0 {
			note(map[bool]EventKind{false: Began, true: Upgraded}[now.upgrades], h, 0, now.part)
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
	if _, _, ok := w.m.Since(w.m.history.position(0)-1, NewPrefixes(""), 1); ok {
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
