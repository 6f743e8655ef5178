package lockfsm

import (
	"testing"
	"time"
)

// TestANonceIsNoProof checks that an Open with the nonce of a session is refused if its instance or
// its capability differs, also after a restore.
func TestANonceIsNoProof(t *testing.T) {
	m, err := New(Charter{FoundedUnixMS: 1, SessionTTL: time.Second, Rules: 1, Limits: DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	index := uint64(0)
	apply := func(c Command) (res Result) {
		index++
		m.ApplyEntry(index, 1, c.Append(nil), func(r *Result) { res = *r })
		return res
	}
	apply(Command{Kind: Born})
	own := guestOpen(Command{Nonce: Nonce{7}}, 1, "lock a")
	mine := own.Opener
	first := apply(own)
	if first.Code != Done {
		t.Fatalf("opening it: %v", first.Code)
	}
	for _, other := range []Command{{}, {Opener: Opener{Instance: [16]byte{1}}}, guestOpen(Command{}, 3, "lock a"),
		guestOpen(Command{}, 1, "lock b")} {
		other.Kind, other.Nonce = Open, Nonce{7}
		if r := apply(other); r.Code != NoSession || r.Session != 0 {
			t.Errorf("%v opens the session of another: %v, session %d", other, r.Code, r.Session)
		}
	}
	restored, err := Restore(m.Snapshot(nil))
	if err != nil {
		t.Fatal(err)
	}
	m = restored
	if s, ok := m.Session(first.Session); !ok || s.Opener != mine {
		t.Errorf("a restored session belongs to %v", s.Opener)
	}
	if r := apply(own); r.Code != Done || r.Session != first.Session {
		t.Errorf("the opener's second Open: %v, session %d", r.Code, r.Session)
	}
}

// TestOnlyTheOpenerChangesAValue checks that an instance cannot change the value of another's hold,
// although it knows the token, nor that of its own hold under another capability.
func TestOnlyTheOpenerChangesAValue(t *testing.T) {
	w := newWorld(t)
	open := guestOpen(Command{Nonce: Nonce{7}}, 1, "lock k")
	mine := open.Opener
	s := w.do(open, Done).Session
	w.do(Command{Kind: Attach, Session: s, Epoch: 1, Number: 1, Nonce: Nonce{7}}, Done)
	token := w.acquire(s, 1, "k", Granted).Token
	change := Command{Kind: SetValue, Key: "k", Token: token, Seq: 1, Value: []byte("v")}
	for _, other := range []Opener{{}, {Instance: [16]byte{2}}, {Instance: [16]byte{1}},
		{Instance: [16]byte{2}, Capability: mine.Capability}, {Instance: [16]byte{1}, Capability: [32]byte{1}}} {
		change.Opener = other
		w.do(change, NotHeld)
	}
	change.Opener = mine
	w.do(change, Done)
	if info, _ := w.m.Inspect("k", 1); string(info.Queue[0].Value) != "v" {
		t.Errorf("the value is %q", info.Queue[0].Value)
	}
}
