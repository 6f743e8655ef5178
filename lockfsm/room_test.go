package lockfsm

import (
	"fmt"
	"runtime"
	"testing"
)

// TestSessionsGiveTheirRoomBack checks that sessions which once had many requests, and keep one
// lock each, need little memory afterwards.
func TestSessionsGiveTheirRoomBack(t *testing.T) {
	const sessions, requests = 40, 2048
	w := newWorld(t)
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	once := func(nonce byte) {
		s := w.session(nonce)
		for n := Number(1); n <= requests; n++ {
			w.acquire(s, n, fmt.Sprint(nonce, "/", n), Granted)
		}
		for n := Number(2); n <= requests; n++ {
			w.do(Command{Kind: Release, Session: s, Epoch: 1, Number: n}, Done)
		}
	}
	once(1) // fills the pools
	before := heap()
	for nonce := byte(2); nonce <= sessions; nonce++ {
		once(nonce)
	}
	const most = 16 << 10
	if each := int64(heap()-before) / (sessions - 1); each > most {
		t.Errorf("a session with one lock needs %d bytes after it had %d, want at most %d", each, requests, most)
	}
	w.check()
}
