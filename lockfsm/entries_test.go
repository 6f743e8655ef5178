package lockfsm

import (
	"reflect"
	"testing"
)

func TestEntriesAreTheQueues(t *testing.T) {
	m, err := New(Charter{Group: 1, FoundedUnixMS: 1_700_000_000_000, Rules: 1, SessionTTL: 1e9,
		Limits: DefaultLimits()})
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
	s := apply(Command{Kind: Open, Nonce: Nonce{1}}).Session
	x := apply(Command{Kind: Acquire, Session: s, Number: 1, Key: "x"})
	if m.Revision() != Revision(x.Token) {
		t.Errorf("revision %d after a grant with token %d", m.Revision(), x.Token)
	}
	w := apply(Command{Kind: Acquire, Session: s, Number: 2, Key: "x"})
	y := apply(Command{Kind: Acquire, Session: s, Number: 3, Key: "y", Mode: ModePermits, Permits: 2, Of: 3})
	want := []EntryInfo{
		{Key: "x", Session: s, Number: 1, Place: w.Watch, Token: x.Token},
		{Key: "x", Session: s, Number: 2, Place: Revision(y.Token) - 2},
		{Key: "y", Session: s, Number: 3, Place: Revision(y.Token) - 1, Token: y.Token, Permits: 2, Of: 3},
	}
	got := m.Entries()
	if len(got) != len(want) {
		t.Fatalf("entries %+v, want %+v", got, want)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("entry %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}
