package lockfsm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A filming takes captures of the machine m between commands. The field plain is a machine that
// applies the same log without captures.
type filming struct {
	t        *testing.T
	rand     *rand.Rand
	m, plain *Machine
	c        *Capture
	want     []byte  // the snapshot of the machine plain at the beginning of c
	moment   picture // the picture of the state at the beginning of c
	most     int     // largest number of items in a step
	patience int     // a turn replaces the present capture with probability 1/patience
	taken    int
	replaced int
}

func (f *filming) step(moment func() picture) {
	f.t.Helper()
	r := f.rand
	switch n := r.IntN(f.patience); {
	case f.c == nil && r.IntN(4) == 0 || n == 0:
		f.begin(moment())
	case n == 1:
		if !bytes.Equal(f.m.Snapshot(nil), f.plain.Snapshot(nil)) {
			f.t.Fatal("a snapshot in the middle of a capture differs")
		}
	case f.c != nil && n%2 == 0 && f.c.Step(1+r.IntN(f.most)):
		f.read()
	}
}

func (f *filming) begin(moment picture) {
	before := f.c
	f.want, f.moment = f.plain.Snapshot(nil), moment
	f.c = f.m.Capture()
	if before != nil {
		f.replaced++
		if !before.Step(1) || len(before.AppendTo(nil, func() {})) > 0 {
			f.t.Fatal("a capture goes on after the next one has begun")
		}
	}
}

func (f *filming) read() {
	f.t.Helper()
	f.taken++
	got := f.c.AppendTo([]byte("abc"), func() {})[3:]
	f.c = nil
	if bytes.Equal(got, f.want) {
		return
	}
	m, err := restore(got, f.m.supported)
	if err != nil {
		f.t.Fatalf("the capture cannot be restored: %v\nof\n%s", err, f.moment)
	}
	f.t.Fatalf("captured\n%s\nof\n%s", m.picture(), f.moment)
}

func (f *filming) apply(s step) Result {
	f.plain.Apply(s.index, s.term, s.command)
	return f.m.Apply(s.index, s.term, s.command)
}

// TestCaptureIsOfItsMoment steps captures between random commands, and checks that each capture has
// the bytes of the state in which it began. The test fails if the machine changes a session or lock
// without a call of sessionChanges or lockChanges.
func TestCaptureIsOfItsMoment(t *testing.T) {
	ran, taken, replaced := 0, 0, 0
	for seed := range uint64(seedsOf(150)) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			log := run{charter: charterFor(r), supported: marksVersion}
			f := &filming{t: t, rand: r, m: log.machine(t), plain: log.machine(t), most: 3, patience: 40}
			w := &workload{rand: r, t: newTwin(log.charter, log.supported), term: 5}
			for i := range 600 {
				c := w.next()
				f.step(w.t.picture)
				f.apply(step{uint64(i + 1), w.term, encode(t, c)})
				w.t.apply(w.term, c)
				if err := f.m.Check(); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				if r.IntN(100) == 0 && f.m.Failed() == nil {
					f.m, f.c = again(t, f.m), nil
				}
			}
			ran, taken, replaced = ran+1, taken+f.taken, replaced+f.replaced
		})
	}
	t.Logf("%d captures were taken, %d were replaced by others", taken, replaced)
	if ran >= 50 && !t.Failed() && (taken < 1000 || replaced < 100) {
		t.Error("too few captures to prove anything")
	}
}

func seedsOf(n int) int {
	if testing.Short() {
		return n / 3
	}
	return n
}

// TestCaptureOfManyLocks checks captures with many sessions and locks in the overlay.
func TestCaptureOfManyLocks(t *testing.T) {
	for seed := range uint64(seedsOf(15)) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 4))
			charter := smallCharter()
			charter.Grace = 1 // the end of the grace changes all locks in one command
			log := run{charter: charter, supported: marksVersion}
			f := &filming{t: t, rand: r, m: log.machine(t), plain: log.machine(t), most: 20, patience: 1000}
			var live []*session
			for i := range 6000 {
				live = live[:0]
				for s := f.m.sessions.first; s != nil; s = s.after {
					live = append(live, s)
				}
				f.step(f.plain.picture)
				f.apply(step{uint64(i + 1), 1, encode(t, crowdCommand(r, i, live))})
			}
			if err := f.m.Check(); err != nil {
				t.Fatal(err)
			}
			if f.taken < 10 {
				t.Errorf("only %d captures were taken of %+v", f.taken, f.m.Counts())
			}
		})
	}
}

func crowdCommand(r *rand.Rand, i int, live []*session) Command {
	switch n := r.IntN(1000); {
	case i == 0:
		return Command{Kind: Born}
	case len(live) == 0 || n < 30:
		return Command{Kind: Open, Nonce: Nonce{1, byte(i), byte(i >> 8)}, Record: make([]byte, r.IntN(40))}
	case n < 31:
		return Command{Kind: EndGrace}
	}
	s := live[r.IntN(len(live))]
	c := Command{Session: s.id, Epoch: s.epoch, Number: s.next}
	switch n := r.IntN(100); {
	case n < 2:
		c.Kind = Close
	case n < 4:
		c.Kind = Leaving
	case n < 8:
		c.Kind, c.Epoch, c.Nonce, c.Live = Attach, s.epoch+1, s.nonce, []Range{{1, max(1, s.next-1)}}
		if s.next == 1 {
			c.Live = nil
		}
	case n < 65 || s.requests.Len() == 0:
		c.Kind, c.Key = Acquire, fmt.Sprint(r.IntN(400))
	default:
		c.Kind, c.Number = Release, s.firstRequest().number
	}
	return c
}

// TestCaptureWhileAnotherReads checks, with the race detector, that AppendTo may run concurrently
// with the machine after Step has returned true.
func TestCaptureWhileAnotherReads(t *testing.T) {
	w, a, b := crowded(t)
	w.do(Command{Kind: Adopt, Settings: []byte("settings")}, Done)
	want := w.m.Snapshot(nil)
	c := w.m.Capture()
	for !c.Step(1) {
	}
	got := make(chan []byte)
	go func() { got <- c.AppendTo(nil, func() {}) }()
	w.do(Command{Kind: Adopt, TTL: 1, Settings: []byte("others")}, Done)
	w.do(Command{Kind: Attach, Session: a, Epoch: 7, Number: 9, Nonce: Nonce{1}}, Done)
	w.do(Command{Kind: Close, Session: b, Epoch: 1}, Done)
	next := w.m.Capture()
	for !next.Step(1) {
	}
	if !bytes.Equal(<-got, want) {
		t.Error("the bytes are not those of the capture's moment")
	}
}

// TestCaptureOfTheFailed checks that the capture of a failed machine is empty, and that an earlier
// capture has the state before the failure.
func TestCaptureOfTheFailed(t *testing.T) {
	w, _, _ := crowded(t)
	want := w.m.Snapshot(nil)
	c := w.m.Capture()
	if c.Step(1) || len(c.AppendTo(nil, func() {})) > 0 {
		t.Fatal("the capture is done after one step, or appends something before its end")
	}
	w.do(Command{Kind: Raise, Version: RulesVersion + 1}, Unsupported)
	late := w.m.Capture()
	if !late.Step(1) || string(late.AppendTo([]byte("abc"), func() {})) != "abc" {
		t.Error("a failed machine gives a capture")
	}
	for !c.Step(1) {
	}
	if !bytes.Equal(c.AppendTo(nil, func() {}), want) {
		t.Error("the bytes are not of the state before the failure")
	}
}

// TestStepIsSmall checks that a step does no more work than its parameter allows, whatever is in
// the overlay and the lists.
func TestStepIsSmall(t *testing.T) {
	const waiters = 500
	for _, released := range []int{0, 400, 1000} {
		p := newPairs(t, 1000)
		for range 1000 {
			p.acquire()
		}
		for range waiters {
			p.number++
			p.apply(Command{Kind: Acquire, Session: p.session, Epoch: 1, Number: p.number, Key: p.keys[7]})
		}
		c := p.w.m.Capture()
		for n := range released {
			p.release(Number(n + 1))
		}
		steps := 1
		for ; !c.Step(10); steps++ {
			p.acquire()
		}
		// A changed lock can be visited twice: in the list, if it still exists, and in the overlay.
		if most := 2 * (1000 + waiters) / 10; steps < 100 || steps > most {
			t.Errorf("%d released: %d steps, want 100 to %d", released, steps, most)
		}
		if _, err := Restore(c.AppendTo(nil, func() {})); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCaptureEnds checks that a capture ends even if commands keep adding locks.
func TestCaptureEnds(t *testing.T) {
	p := newPairs(t, 1<<12)
	p.w.session(2)
	for range 100 {
		p.acquire()
	}
	c := p.w.m.Capture()
	for steps := 1; !c.Step(1); steps++ {
		p.acquire()
		p.acquire()
		for i := range byte(2) {
			p.apply(Command{Kind: Open, Nonce: Nonce{9, byte(steps), byte(steps >> 8), i}})
		}
		if steps > 200 {
			t.Fatal("a capture of 100 locks does not end")
		}
	}
}

func TestAsides(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	for range 100 {
		var h overlay
		var want []uint64
		for range r.IntN(1500) {
			if len(want) > 0 && r.IntN(3) == 0 {
				slices.Sort(want)
				if got := h.first(); got != want[0] || h.pop().place != got {
					t.Fatalf("the first place is %d, want %d", got, want)
				}
				want = want[1:]
				continue
			}
			place := r.Uint64N(1000)
			h.push(overlayItem{place: place})
			want = append(want, place)
		}
		slices.Sort(want)
		for _, place := range want {
			if got := h.pop().place; got != place {
				t.Fatalf("popped %d, want %d", got, place)
			}
		}
		if h.n != 0 || h.first() != 1<<64-1 {
			t.Fatal("something is left")
		}
	}
}

func TestPutTogetherWithPauses(t *testing.T) {
	c := newCrowd(t, 10, 20_000).m.Capture()
	for !c.Step(1000) {
	}
	pauses := 0
	b := c.AppendTo(nil, func() { pauses++ })
	if want := len(b) / chunkBytes; want < 5 || pauses < want {
		t.Errorf("%d pauses in %d bytes, want one in each %d", pauses, len(b), chunkBytes)
	}
}
