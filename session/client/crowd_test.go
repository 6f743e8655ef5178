package client

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// TestACrowdReusesItsOutcomes checks that the slices of outcomes are reused while turns need them,
// and that a burst does not pin them.
func TestACrowdReusesItsOutcomes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	const crowd, alwaysKept = 3 * 1024, 1024
	number := lockfsm.Number(0)
	grants := func() {
		var replies []session.Reply
		for range crowd {
			number++
			b.core.Acquire(b.now, &Request{Key: fmt.Sprint(number)})
			replies = append(replies, b.state(number, lockfsm.Granted, lockfsm.Token(number)))
		}
		b.turn()
		b.reply(nodeidtest.ID(1), replies...)
	}
	slices := map[*Outcome]bool{}
	for range 8 {
		grants()
		b.turn()
		if len(b.outcomes) != crowd {
			t.Fatalf("%d outcomes, want %d", len(b.outcomes), crowd)
		}
		slices[&b.core.told[0]] = true
	}
	if len(slices) > 2 {
		t.Errorf("8 turns of %d grants have used %d slices, want 2", crowd, len(slices))
	}
	for range 256 {
		b.turn()
	}
	if n := max(cap(b.core.told), cap(b.core.outcomes)); n > alwaysKept {
		t.Errorf("a slice of %d outcomes is kept after 256 turns without one", n)
	}
}

// TestACrowdLeavesNothingAlive checks that a crowd of callers that has released its locks is not
// kept alive by the client.
func TestACrowdLeavesNothingAlive(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	const crowd = 100
	var requests []*Request
	var granted, freed []session.Reply
	for i := range crowd {
		r := &Request{Key: fmt.Sprint(i)}
		b.core.Acquire(b.now, r)
		number := lockfsm.Number(i + 1)
		granted = append(granted, b.state(number, lockfsm.Granted, lockfsm.Token(number)))
		requests, freed = append(requests, r), append(freed, b.freed(number))
	}
	b.turn()
	b.reply(nodeidtest.ID(1), granted...)
	b.turn()
	for _, r := range requests {
		if !b.core.Release(b.now, r) {
			t.Fatal("a lock is not held")
		}
	}
	b.turn()
	b.reply(nodeidtest.ID(1), freed...)
	b.turn()
	for _, e := range b.core.frees[:cap(b.core.frees)] {
		if e != nil {
			t.Fatal("a released lock is kept alive")
		}
	}
}

// TestACrowdDoesNotPinTheInbox checks that the inbox of a client is small again some turns after a
// crowd has called at once.
func TestACrowdDoesNotPinTheInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		c := w.clients[nodeidtest.ID(100)]
		const crowd, large = 3000, 1024
		c.mu.Lock()
		for range crowd {
			c.inbox = append(c.inbox, input{kind: inputTargets, targets: []nodeid.Endpoint{{ID: nodeidtest.ID(1)}}})
		}
		c.mu.Unlock()
		time.Sleep(5 * time.Minute)
		c.mu.Lock()
		defer c.mu.Unlock()
		if n := max(cap(c.inbox), cap(c.spare)); n > large {
			t.Errorf("room for %d inputs is kept", n)
		}
	})
}

// TestACrowdGivesItsRoomBack checks that a client which once had many requests needs little memory
// afterwards, although it still holds a lock.
func TestACrowdGivesItsRoomBack(t *testing.T) {
	slow.UnderRace(t)
	const clients, crowd = 8, 10_000
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	once := func() *bench {
		b := newBench(t)
		b.attach()
		b.acquire("kept", false)
		requests := make([]*Request, crowd)
		for i := range requests {
			requests[i] = &Request{Key: fmt.Sprint(i)}
			b.core.Acquire(b.now, requests[i])
		}
		for turns := 0; b.core.unsent.head != nil || b.core.sent.size > 1; turns++ {
			if b.turn(); turns > crowd {
				t.Fatal("the requests do not end")
			}
			var replies []session.Reply
			for e := b.core.sent.head; e != nil; e = e.next {
				switch {
				case e.freeing:
					replies = append(replies, b.freed(e.number))
				case e.req.stage == stageWaiting:
					replies = append(replies, b.state(e.number, lockfsm.Granted, lockfsm.Token(e.number)))
				case e.req.Key != "kept":
					b.core.Release(b.now, e.req)
				}
			}
			b.reply(nodeidtest.ID(1), replies...)
		}
		for range 1000 { // the slices for reuse are given back
			b.turn()
		}
		if b.core.sent.size != 1 || b.core.Check() != nil {
			t.Fatalf("%d entries, want 1; %v", b.core.sent.size, b.core.Check())
		}
		return b
	}
	once()
	before, kept := heap(), make([]*bench, clients)
	for i := range kept {
		kept[i] = once()
	}
	const most = 16 << 10
	if each := int64(heap()-before) / clients; each > most {
		t.Errorf("a client with one lock needs %d bytes after it had %d, want at most %d", each, crowd, most)
	}
	runtime.KeepAlive(kept)
}
