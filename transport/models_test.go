package transport

import (
	"container/list"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/fair"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// TestRatesOfDials spends each burst, and then one dial at a time.
func TestRatesOfDials(t *testing.T) {
	p := newPlaces()
	for c, want := range map[class]struct {
		burst int
		every time.Duration
	}{preferred: {32, time.Second / 32}, ordinary: {32, time.Second / 16}} {
		r, now := &p.rates[c], time.Unix(1_000_000, 0)
		for round := range 3 {
			for n := range want.burst {
				if w := r.wait(now); w > 0 {
					t.Fatalf("class %d, round %d: dial %d of the burst waits %v", c, round, n, w)
				}
				r.spend(now)
			}
			for range 5 {
				if w := r.wait(now); w != want.every {
					t.Fatalf("class %d, round %d: after the burst a dial waits %v, want %v", c, round, w, want.every)
				}
				if w := r.wait(now.Add(want.every - 1)); w != 1 {
					t.Fatalf("class %d, round %d: a moment before its time it waits %v", c, round, w)
				}
				now = now.Add(want.every)
				if w := r.wait(now); w > 0 {
					t.Fatalf("class %d, round %d: at its time it waits %v", c, round, w)
				}
				r.spend(now)
			}
			now = now.Add(time.Duration(round+1) * time.Duration(want.burst) * want.every)
		}
	}
}

// TestTheShorterWaitIsTold has a dial of each class, and both have to wait.
func TestTheShorterWaitIsTold(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for _, shorter := range []class{preferred, ordinary} {
		p := newPlaces()
		for c := range classes {
			p.enter(&ticket{class: c})
			wait := 2 * time.Second
			if c == shorter {
				wait = time.Second
			}
			p.rates[c].full = now.Add(time.Duration(p.rates[c].burst-1)*p.rates[c].every + wait)
		}
		if got, wait := p.next(now); got != nil || wait != time.Second {
			t.Errorf("class %d waits less: %v and %v", shorter, got, wait)
		}
	}
}

// TestPlacesAreThoseOfAModel compares each answer of the places for dials with that of two lists.
func TestPlacesAreThoseOfAModel(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 8))
		p, now := newPlaces(), time.Unix(1_000_000, 0)
		var lines, busy [classes][]*ticket
		for step := range 400 {
			now = now.Add(time.Duration(r.Int64N(int64(20 * time.Millisecond))))
			switch k := r.IntN(10); {
			case k < 4:
				n := &ticket{addr: fmt.Sprint("h", r.IntN(6)), class: class(r.IntN(2))}
				p.enter(n)
				lines[n.class] = append(lines[n.class], n)
			case k < 7:
				var want *ticket
				var wait time.Duration
				for c := range classes {
					full := len(busy[0])+len(busy[1]) == maxDials || c == ordinary && len(busy[1]) == dialsOrdinary
					if want != nil || full || len(lines[c]) == 0 {
						continue
					}
					if w := p.rates[c].wait(now); w <= 0 {
						want, wait = lines[c][0], 0
					} else if wait == 0 || w < wait {
						wait = w
					}
				}
				got, gotWait := p.next(now)
				if got != want || gotWait != wait || got != nil && got.waiting != nil {
					t.Fatalf("seed %d, step %d: %v and %v, want %v and %v", seed, step, got, gotWait, want, wait)
				}
				if got != nil {
					lines[got.class] = lines[got.class][1:]
					busy[got.class] = append(busy[got.class], got)
					p.begin(got, now)
				}
			case k < 8:
				c := r.IntN(2)
				if n := len(busy[c]); n > 0 {
					p.end(busy[c][n-1])
					busy[c] = busy[c][:n-1]
				}
			case k < 9:
				c := r.IntN(2)
				if n := len(lines[c]); n > 0 {
					i := r.IntN(n)
					p.leave(lines[c][i])
					lines[c] = slices.Delete(lines[c], i, i+1)
				}
			default:
				voters := map[string]bool{"h1": r.IntN(2) == 0, "h2": r.IntN(2) == 0, "h3": r.IntN(2) == 0}
				of := func(addr string) class {
					if voters[addr] {
						return preferred
					}
					return ordinary
				}
				p.move(of)
				for c := range classes {
					for _, n := range slices.Clone(lines[c]) {
						if is := of(n.addr); is != c {
							i := slices.Index(lines[c], n)
							lines[c] = slices.Delete(lines[c], i, i+1)
							lines[is] = append(lines[is], n)
						}
					}
				}
			}
			for c := range classes {
				var got []*ticket
				for e := p.lines[c].Front(); e != nil; e = e.Next() {
					n := e.Value.(*ticket)
					if got = append(got, n); n.class != c || n.waiting != e {
						t.Fatalf("seed %d, step %d: a ticket of class %d is in line %d", seed, step, n.class, c)
					}
				}
				if !slices.Equal(got, lines[c]) || p.busy[c] != len(busy[c]) {
					t.Fatalf("seed %d, step %d, class %d: %d wait, want %d; %d dial, want %d", seed, step, c, len(got),
						len(lines[c]), p.busy[c], len(busy[c]))
				}
			}
		}
	}
}

// TestArrivalsAreThoseOfAModel compares which call is displaced, and what is counted for each
// instance and each secret.
func TestArrivalsAreThoseOfAModel(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 9))
		a := newArrivals()
		a.each, a.secret, a.derived, a.limit = 3, 4, 6, 9
		var model []*accepted
		places := map[*accepted]*list.Element{}
		count := func(in func(fair.Identity) bool) (n int, oldest *accepted) {
			for _, c := range model {
				if in(c.owner) {
					if n++; oldest == nil {
						oldest = c
					}
				}
			}
			return n, oldest
		}
		for step := range 300 {
			var want, got *accepted
			if i := r.IntN(len(model) + 3); i < len(model) {
				c := model[i]
				model = slices.Delete(model, i, i+1)
				a.remove(places[c])
				a.remove(places[c]) // the end of a call that was displaced
			} else {
				c := &accepted{owner: fair.Identity{Instance: nodeidtest.ID(r.Uint64N(4)),
					Secret: []string{"", "s", "u"}[r.IntN(3)]}}
				model = append(model, c)
				who := c.owner
				for _, group := range []struct {
					limit int
					in    func(fair.Identity) bool
				}{
					{a.each, func(o fair.Identity) bool { return o.Instance == who.Instance }},
					{a.secret, func(o fair.Identity) bool { return who.Secret != "" && o.Secret == who.Secret }},
					{a.derived, func(o fair.Identity) bool { return who.Secret != "" && o.Secret != "" }},
					{a.limit, func(fair.Identity) bool { return true }},
				} {
					if n, oldest := count(group.in); n > group.limit {
						want = oldest
						break
					}
				}
				places[c] = a.list.PushBack(c)
				e := a.surplus(c.owner)
				if e != nil {
					got = e.Value.(*accepted)
				}
				a.remove(e)
				model = slices.DeleteFunc(model, func(o *accepted) bool { return o == want })
			}
			counts := map[string]int{}
			for _, c := range model {
				counts[string(c.owner.Instance[:])]++
				if c.owner.Secret != "" {
					counts["secret "+c.owner.Secret]++
					counts[allDerived]++
				}
			}
			if got != want || a.count() != len(model) || !maps.Equal(a.counts, counts) {
				t.Fatalf("seed %d, step %d: displaced %p, want %p; %d calls, want %d; %v, want %v", seed, step, got,
					want, a.count(), len(model), a.counts, counts)
			}
		}
	}
	if a := newArrivals(); a.each != 256 || a.secret != 256 || a.derived != 384 || a.limit != 512 {
		t.Errorf("limits %d, %d, %d and %d", a.each, a.secret, a.derived, a.limit)
	}
}

// TestOwnersAreThoseOfAModel compares which connection of an instance is displaced. Closed ones
// take no place, and instances without connections are forgotten.
func TestOwnersAreThoseOfAModel(t *testing.T) {
	var o owners
	model := map[nodeid.ID][]*accepted{}
	r := rand.New(rand.NewPCG(1, 10))
	var all []*accepted
	for step := range 1500 {
		instance := nodeidtest.ID(r.Uint64N(uint64(3 + step/10)))
		conn := &accepted{gone: make(chan struct{})}
		if old := living(slices.Clone(model[instance])); len(old) > 0 && r.IntN(5) == 0 {
			conn = old[r.IntN(len(old))] // it is known already
		}
		var want *accepted
		if !slices.Contains(model[instance], conn) {
			model[instance] = append(slices.DeleteFunc(model[instance], func(c *accepted) bool {
				return isClosed(c.gone)
			}), conn)
			if len(model[instance]) > connsEach {
				want, model[instance] = model[instance][0], model[instance][1:]
			}
		}
		all = append(all, conn)
		if got := o.enter(instance, conn); got != want || !slices.Equal(living(slices.Clone(o.conns[instance])),
			living(slices.Clone(model[instance]))) {
			t.Fatalf("step %d: displaced %p, want %p; %d connections, want %d", step, got, want, len(o.conns[instance]),
				len(model[instance]))
		}
		if c := all[r.IntN(len(all))]; r.IntN(3) > 0 && !isClosed(c.gone) {
			close(c.gone)
		}
		if len(o.conns) > 2*o.swept+65 {
			t.Fatalf("step %d: %d instances are remembered", step, len(o.conns))
		}
	}
	for _, c := range all {
		if !isClosed(c.gone) {
			close(c.gone)
		}
	}
	for i := range uint64(1000) {
		conn := &accepted{gone: make(chan struct{})}
		o.enter(nodeidtest.ID(1<<20+i), conn)
		close(conn.gone)
	}
	if len(o.conns) > 130 {
		t.Errorf("%d instances whose connections are closed are remembered", len(o.conns))
	}
}

// TestKnownAddressesAreThoseOfAModel compares the order of the addresses, the oldest first.
func TestKnownAddressesAreThoseOfAModel(t *testing.T) {
	var a addrs
	var model []seenAt
	r, now := rand.New(rand.NewPCG(1, 11)), time.Unix(1_000_000, 0)
	for step := range 5000 {
		now = now.Add(time.Duration(r.Int64N(int64(time.Second))))
		addr := fmt.Sprint("h", r.IntN(maxAddrs*3/2))
		if i := slices.IndexFunc(model, func(s seenAt) bool { return s.addr == addr }); i >= 0 {
			model = slices.Delete(model, i, i+1)
		} else if len(model) == maxAddrs {
			model = model[1:]
		}
		model = append(model, seenAt{addr, now})
		a.add(addr, now)
		if len(a.at) != len(model) || a.order.Len() != len(model) || a.order.Front().Value != model[0] ||
			a.order.Back().Value != model[len(model)-1] || a.at[addr] != a.order.Back() {
			t.Fatalf("step %d: %d addresses in the map, %d in the list, want %d", step, len(a.at), a.order.Len(),
				len(model))
		}
		s := model[r.IntN(len(model))]
		if a.has(s.addr, s.at.Add(addrsKept)) || !a.has(s.addr, s.at.Add(addrsKept-1)) || a.has("other", now) {
			t.Fatalf("step %d: %s of %v is forgotten too early or too late", step, s.addr, s.at)
		}
	}
}

// TestFramesAreCountedHoweverTheyArrive cuts the same frames at all places.
func TestFramesAreCountedHoweverTheyArrive(t *testing.T) {
	b, want := make([]byte, http2Preface), 0
	for _, f := range []struct {
		kind byte
		size int
		paid bool
	}{{0, 255, false}, {0, 256, true}, {0, 257, true}, {0, 0, false}, {1, 300, false}, {4, 0, false}, {0, 1 << 16, true},
		{8, 4, false}, {0, 300, true}} {
		b = append(b, byte(f.size>>16), byte(f.size>>8), byte(f.size), f.kind, 0, 0, 0, 0, 1)
		b = append(b, make([]byte, f.size)...)
		if !f.paid {
			want++
		}
	}
	for _, piece := range []int{1, 2, 3, 7, 8, 9, 10, 23, 24, 25, 300, 4096, len(b)} {
		f, got := frameCounter{skip: http2Preface}, 0
		for part := range slices.Chunk(b, piece) {
			got += f.count(part)
		}
		if got != want || f.skip != 0 || f.have != 0 {
			t.Errorf("in pieces of %d bytes: %d frames, want %d; %d and %d bytes are left", piece, got, want, f.skip, f.have)
		}
	}
}

// TestThePauseAfterEachFailedDial has failed dials one after the other. The first pause and the
// longest one depend on the address, on this node, and on whether a program has answered.
func TestThePauseAfterEachFailedDial(t *testing.T) {
	for _, c := range []struct {
		preferred, newborn, answered bool
		first, most                  time.Duration
	}{
		{false, false, false, pauseFirst, maxPause},
		{false, true, false, pauseFirst, pauseNewborn},
		{true, false, false, preferredFirst, preferredLast},
		{true, true, false, preferredFirst, preferredLast},
		{false, false, true, pauseFirst, pauseAnswered},
		{false, true, true, pauseFirst, pauseAnswered},
		{true, false, true, preferredFirst, pauseAnswered},
		{true, true, true, preferredFirst, pauseAnswered},
	} {
		d := newDials(func(b []byte) { clear(b) }, func() bool { return c.newborn })
		key, err := pauseKey{addr: "a:1"}, error(syscall.ECONNREFUSED)
		if c.answered {
			err = ErrForeign
		}
		if c.preferred {
			d.prefer([]string{"a:1"})
		}
		want := c.first
		for n := range 12 {
			d.failed(key, err, 0)
			if got := d.pauses.known[key].delay; got != want {
				t.Errorf("%+v: after %d failures the limit of the pause is %v, want %v", c, n+1, got, want)
				break
			}
			want = min(2*want, c.most)
		}
		d.closed = true
		d.failed(pauseKey{addr: "b:1"}, err, 0)
		if len(d.pauses.known) != 1 {
			t.Errorf("%+v: a closed port notes a pause", c)
		}
	}
}
