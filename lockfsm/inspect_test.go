package lockfsm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestInspect(t *testing.T) {
	w := kinds(t)
	if _, ok := w.m.Inspect("nobody", 9); ok {
		t.Error("Inspect finds a lock that was never requested")
	}
	i, ok := w.m.Inspect("r", 9)
	if !ok || i.Held != 2 || i.Waiting != 3 || len(i.Queue) != 5 || string(i.Queue[0].Value) != "v" {
		t.Fatalf("%+v", i)
	}
	last := i.Queue[4]
	if fmt.Sprint(last.Key, last.Keys) != "n[r s]" || last.Token != 0 || last.Watch == 0 || last.Permits != 1 ||
		string(last.Record) != "\x02" {
		t.Errorf("%+v", last)
	}
	if i, _ := w.m.Inspect("r", 2); len(i.Queue) != 2 || i.Waiting != 3 {
		t.Errorf("%+v", i)
	}
	token := i.Queue[0].Token
	if !w.m.Holds("r", token) || w.m.Holds("s", token) || w.m.Holds("r", token+1) || w.m.Holds("r", 0) {
		t.Error("Holds")
	}
}

// TestWalk checks that a lock that exists during a whole walk is listed exactly once, while other
// locks are created and removed.
func TestWalk(t *testing.T) {
	for seed := range 200 {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		w := newWorld(t)
		s := w.session(1)
		there := map[string]Number{}
		number := Number(0)
		take := func(stays bool) {
			number++
			key := fmt.Sprintf("%c/%d", "ab"[r.IntN(2)], number)
			w.acquire(s, number, key, Granted)
			if !stays {
				there[key] = number
			}
		}
		want := map[string]bool{}
		for range 30 {
			take(r.IntN(2) == 0)
		}
		for _, e := range w.m.Entries() {
			if _, goes := there[e.Key]; !goes && e.Key[0] == 'a' {
				want[e.Key] = true
			}
		}
		var got []string
		var c Cursor
		for more := true; more; {
			var page []LockInfo
			if page, c, more = w.m.Walk(c, "a/", 1+r.IntN(3), 1, 1+r.IntN(8)); len(page) > 3 {
				t.Fatalf("%d locks in a page", len(page))
			}
			for _, l := range page {
				got = append(got, l.Key)
			}
			for key, n := range there { // in any order
				if r.IntN(4) == 0 {
					w.do(Command{Kind: Release, Session: s, Epoch: 1, Number: n}, Done)
					delete(there, key)
				}
			}
			if r.IntN(2) == 0 {
				take(true)
			}
		}
		slices.Sort(got)
		if len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Fatalf("seed %d: listed twice: %v", seed, got)
		}
		for key := range want {
			if !slices.Contains(got, key) {
				t.Fatalf("seed %d: %s is missing: %v", seed, key, got)
			}
		}
	}
}

func TestInspectIsBounded(t *testing.T) {
	w := newWorld(t)
	w.do(Command{Kind: Adopt, SessionBytes: 1 << 30, GroupBytes: 1 << 30}, Done)
	s := w.session(1)
	for n := range Number(100) {
		keys := manyKeys(MaxKeys)
		for i := range keys {
			keys[i] += fmt.Sprintf("%0500d", 0)
		}
		want := Waiting
		if n == 0 {
			want = Granted
		}
		w.do(Command{Kind: Acquire, Session: s, Epoch: 1, Number: n + 1, Key: keys[0], Keys: keys[1:]}, want)
	}
	size := func(l LockInfo) (n int) {
		for _, s := range l.Queue {
			for _, key := range s.Keys {
				n += len(key)
			}
		}
		return n
	}
	first := w.m.locks.first.key
	if i, _ := w.m.Inspect(first, 1000); len(i.Queue) == 0 || size(i) > 2*inspectBytes || i.Waiting != 99 {
		t.Errorf("%d in the queue, %d bytes", len(i.Queue), size(i))
	}
	locks := 0
	for c, more := (Cursor{}), true; more; {
		var page []LockInfo
		page, c, more = w.m.Walk(c, "", 100, 3, 1000)
		n := 0
		for _, l := range page {
			n += size(l)
		}
		if n > 3*inspectBytes {
			t.Fatalf("a page of %d bytes", n)
		}
		locks += len(page)
	}
	if locks != MaxKeys {
		t.Errorf("%d locks", locks)
	}
}

// TestHoldersBehindARequestThatWaitsElsewhere checks that Holders lists a holder that is behind a
// waiting request. The waiting request has several keys, and waits only in the queue of another
// key.
func TestHoldersBehindARequestThatWaitsElsewhere(t *testing.T) {
	w := newWorld(t)
	s := w.session(1)
	permit := func(n Number, key string, keys ...string) Command {
		return Command{Kind: Acquire, Session: s, Epoch: 1, Number: n, Key: key, Keys: keys, Mode: ModePermits,
			Permits: 1, Of: 3}
	}
	w.acquire(s, 1, "z", Granted)
	first := w.do(permit(2, "k"), Granted)
	w.do(permit(3, "k", "z"), Waiting)
	w.do(permit(4, "k"), Granted)
	i, ok := w.m.Inspect("k", 9)
	if !ok || i.Held != 2 || len(i.Queue) != 3 || i.Queue[0].Token != first.Token || i.Queue[1].Token != 0 {
		t.Fatalf("%+v", i)
	}
	more, ok := w.m.Holders("k", i.Queue[0].Place, 9)
	if !ok || more.Held != 1 || len(more.Queue) != 2 || more.Queue[1].Token != i.Queue[2].Token {
		t.Errorf("after the first holder: %+v, %v", more, ok)
	}
	if more, ok := w.m.Holders("k", i.Queue[2].Place, 9); ok {
		t.Errorf("after the last holder: %+v", more)
	}
}
