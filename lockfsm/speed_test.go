package lockfsm

import (
	"fmt"
	"testing"
)

// pairs applies acquires and releases to a machine. The acquires use the keys in turn.
type pairs struct {
	w       *world
	session SessionID
	number  Number
	buffer  []byte
	keys    []string
}

func newPairs(t testing.TB, keys int) *pairs {
	w := newWorld(t)
	p := &pairs{w: w, session: w.session(1)}
	for i := range keys {
		p.keys = append(p.keys, fmt.Sprint("orders/", i))
	}
	return p
}

func (p *pairs) apply(c Command) Result {
	p.buffer = c.Append(p.buffer[:0])
	command, _, _ := Next(p.buffer)
	return p.w.m.Apply(1, 1, command)
}

func (p *pairs) acquire() Result {
	p.number++
	key := p.keys[int(p.number)%len(p.keys)]
	return p.apply(Command{Kind: Acquire, Session: p.session, Epoch: 1, Number: p.number, Key: key})
}

func (p *pairs) release(n Number) Result {
	return p.apply(Command{Kind: Release, Session: p.session, Epoch: 1, Number: n})
}

// TestAllocations checks that an acquire and its release allocate only the key, and that a grant to
// a waiting request allocates nothing.
func TestAllocations(t *testing.T) {
	p := newPairs(t, 64)
	free := func() {
		if r := p.acquire(); r.Code != Granted {
			t.Fatal(r.Code)
		}
		p.release(p.number)
	}
	for range 10_000 {
		free()
	}
	if n := testing.AllocsPerRun(10_000, free); n > 1 {
		t.Errorf("acquire and release: %v allocations, want 1", n)
	}
	p = newPairs(t, 1)
	p.acquire()
	p.acquire()
	handOver := func() {
		if r := p.acquire(); r.Code != Waiting {
			t.Fatal(r.Code)
		}
		if r := p.release(p.number - 2); len(r.Fired) != 1 || r.Fired[0].Token == 0 {
			t.Fatalf("fired %+v", r.Fired)
		}
	}
	for range 10_000 {
		handOver()
	}
	if n := testing.AllocsPerRun(10_000, handOver); n > 0 {
		t.Errorf("hand-over: %v allocations, want 0", n)
	}
	refused := func() {
		p.number++
		r := p.apply(Command{Kind: Acquire, Session: p.session, Epoch: 1, Number: p.number, Key: p.keys[0], Try: true})
		if r.Code != Held || r.Holder == nil {
			t.Fatal(r.Code)
		}
	}
	if n := testing.AllocsPerRun(1000, refused); n > 0 {
		t.Errorf("a Try that finds the lock held: %v allocations, want 0", n)
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	for _, keys := range []int{1, 1000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			p := newPairs(b, keys)
			b.ReportAllocs()
			for b.Loop() {
				p.acquire()
				p.release(p.number)
			}
		})
	}
}

func BenchmarkHandOver(b *testing.B) {
	p := newPairs(b, 1)
	p.acquire()
	b.ReportAllocs()
	for b.Loop() {
		p.acquire()
		p.release(p.number - 1)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	p := newPairs(b, 100_000)
	for range 200_000 {
		p.acquire()
	}
	buffer := p.w.m.Snapshot(nil)
	b.Run("take", func(b *testing.B) {
		b.SetBytes(int64(len(buffer)))
		for b.Loop() {
			buffer = p.w.m.Snapshot(buffer[:0])
		}
	})
	b.Run("restore", func(b *testing.B) {
		b.SetBytes(int64(len(buffer)))
		for b.Loop() {
			if _, err := Restore(buffer); err != nil {
				b.Fatal(err)
			}
		}
	})
}
