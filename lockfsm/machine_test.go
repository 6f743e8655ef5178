package lockfsm

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestApplyEntry checks that bytes that are not a command give one result for the rest of the
// entry.
func TestApplyEntry(t *testing.T) {
	w, a, b := crowded(t)
	batch := Command{Kind: Release, Session: a, Epoch: 1, Number: 1}.Append(nil)
	batch = Command{Kind: Release, Session: b, Epoch: 1, Number: 1}.Append(batch)
	batch = append(batch, 3, 0, 0, 0) // malformed by itself
	batch = Command{Kind: Acquire, Session: a, Epoch: 1, Number: 2, Key: "x"}.Append(batch)
	batch = append(batch, 100, 1, 2)
	var codes []Code
	var fired []Change
	w.m.ApplyEntry(9, 1, batch, func(r *Result) {
		codes = append(codes, r.Code)
		fired = append(fired, r.Fired...)
	})
	w.check()
	if want := []Code{Done, Done, Malformed, Granted, Malformed}; !slices.Equal(codes, want) {
		t.Errorf("codes %v, want %v", codes, want)
	}
	if len(fired) != 2 || fired[0].Session != b || fired[1].Session != a || fired[0].Token >= fired[1].Token {
		t.Errorf("fired %+v", fired)
	}
	w.m.ApplyEntry(10, 1, Command{Kind: Close, Session: a, Epoch: 1}.Append(nil), nil)
	if got := w.m.Counts(); got.Sessions != 1 {
		t.Errorf("without a callback nothing is applied: %+v", got)
	}
}

func TestApplyKeepsNothing(t *testing.T) {
	w := newWorld(t)
	s := w.session(1)
	for _, c := range []Command{
		{Kind: Open, Nonce: Nonce{9}, Record: []byte("record")},
		{Kind: Acquire, Session: s, Epoch: 1, Number: 1, Key: "key"},
		{Kind: Adopt, Settings: []byte("settings")},
		{Kind: Acquire, Session: s, Epoch: 1, Number: 2, Key: "l", Keys: []string{"m"}, Value: []byte("value")},
	} {
		command := encode(t, c)
		w.m.Apply(1, 1, command)
		for i := range command {
			command[i] = 'z'
		}
	}
	w.check()
	if got := w.acquire(s, 3, "m", Waiting).Holder; string(got.Value) != "value" {
		t.Errorf("the value has become %q", got.Value)
	}
	if got := w.m.Sessions()[1].Record; !bytes.Equal(got, []byte("record")) {
		t.Errorf("the record has become %q", got)
	}
	if got := w.m.Charter().Settings; !bytes.Equal(got, []byte("settings")) {
		t.Errorf("the settings have become %q", got)
	}
	if w.m.locks.byKey["key"] == nil {
		t.Error("the key has changed")
	}
}

// TestNothingIsLeft checks that the maps are empty after the end of many locks and sessions, and
// that the pools are bounded.
func TestNothingIsLeft(t *testing.T) {
	w := newWorld(t)
	const requests = maxSpare + maxSpare/4
	a, b := w.session(1), w.session(2)
	for n := Number(1); n <= requests; n++ {
		w.acquire(a, n, fmt.Sprint("key", n), Granted)
		w.acquire(b, n, fmt.Sprint("key", n), Waiting)
	}
	if got, want := w.m.Counts(), (Counts{2, requests, 2 * requests, requests}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	if fired := w.do(Command{Kind: Close, Session: a, Epoch: 1}, Done).Fired; len(fired) != requests {
		t.Errorf("%d fired, want %d", len(fired), requests)
	}
	w.check()
	w.do(Command{Kind: Expire, Session: b, Term: 1}, Done)
	w.check()
	if got := w.m.Counts(); got != (Counts{}) {
		t.Errorf("left over: %+v", got)
	}
	m := w.m
	if n := len(m.sessions.byID) + len(m.sessions.byNonce) + len(m.locks.byKey); n > 0 {
		t.Errorf("%d items are left in the tables", n)
	}
	w.do(Command{Kind: Born}, Done)
	if n := max(cap(m.ripples.fired), cap(m.answer.states), cap(m.ripples.touched)); n > maxBufferItems {
		t.Errorf("a buffer of %d items is kept forever", n)
	}
}

func TestFailedRefusesAll(t *testing.T) {
	w, a, _ := crowded(t)
	w.do(Command{Kind: Raise, Version: RulesVersion + 1}, Unsupported)
	if !errors.Is(w.m.Failed(), ErrRules) {
		t.Fatalf("Failed: %v", w.m.Failed())
	}
	before := w.m.picture()
	for _, c := range everyKind() {
		c.Session = a
		w.do(c, Unsupported)
	}
	if !w.m.picture().equal(before) {
		t.Errorf("changed from\n%s\nto\n%s", before, w.m.picture())
	}
	if got := w.m.Snapshot([]byte("abc")); string(got) != "abc" {
		t.Errorf("it appends %q as its snapshot", got)
	}
}

func TestUnsupportedCanBeAddressed(t *testing.T) {
	w, a, _ := crowded(t)
	r := w.do(Command{Rules: 9, Kind: Acquire, Session: a, Epoch: 1, Number: 7, Key: "k"}, Unsupported)
	if r.Kind != Acquire || r.Session != a || r.Epoch != 1 || r.Number != 7 {
		t.Errorf("%+v", r)
	}
}

func TestSessionsOutlivesApply(t *testing.T) {
	w, a, b := crowded(t)
	got := w.m.Sessions()
	w.do(Command{Kind: Close, Session: a, Epoch: 1}, Done)
	w.do(Command{Kind: Open, Nonce: Nonce{3}, Record: []byte{3}}, Done)
	if len(got) != 2 || got[0].ID != a || got[1].ID != b || !bytes.Equal(got[0].Record, []byte{1}) {
		t.Errorf("%+v", got)
	}
}

// TestLongQueue checks that a Cancel in a long queue changes only the entry after the cancelled
// one.
func TestLongQueue(t *testing.T) {
	const length = 60_000
	w := newWorld(t)
	a := w.session(1)
	w.acquire(a, 1, "k", Granted)
	for n := Number(2); n <= length; n++ {
		w.acquire(a, n, "k", Waiting)
	}
	for n := Number(length - 1); n > 1; n-- {
		r := w.do(Command{Kind: Cancel, Session: a, Epoch: 1, Number: n}, Done)
		if len(r.Fired) != 1 || r.Fired[0].Number != length {
			t.Fatalf("cancel of %d fired %+v", n, r.Fired)
		}
	}
	w.check()
}
