package lockfsm

import (
	"fmt"
	"testing"
)

// TestDataIsBounded checks that existing data can still be changed when MaxData is reached.
func TestDataIsBounded(t *testing.T) {
	w := newWorld(t)
	s := w.session(1)
	w.acquire(s, 1, "held", Granted)
	put := func(key string, after Revision, want Code) Result {
		t.Helper()
		return w.do(Command{Kind: Put, Key: key, Value: []byte("v"), Nonce: Nonce{byte(after) + 1, byte(after >> 8)},
			Revision: after}, want)
	}
	var first Result
	for i := range MaxData {
		r := put(fmt.Sprint(i), 0, Done)
		if i == 0 {
			first = r
		}
	}
	put("one more", 0, TooMuchData)
	put("held", 0, TooMuchData)
	put("0", first.Data.Revision, Done)
	w.do(Command{Kind: Put, Key: "1", Nonce: Nonce{9}, Revision: first.Data.Revision + 1}, Done)
	put("held", 0, Done)
	w.check()
	if w.m.data != MaxData {
		t.Errorf("%d keys have data", w.m.data)
	}
}
