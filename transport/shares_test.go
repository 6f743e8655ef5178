package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/fair"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

func frameOf(kind byte, payload int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(payload)<<8|uint32(kind))
	return append(append(b, 0, 0, 0, 0, 1), make([]byte, payload)...)
}

func TestFramesThatCostNothingAreCounted(t *testing.T) {
	all, want := make([]byte, http2Preface), 0
	for kind := range byte(12) { // all kinds of RFC 9113, and two that do not exist
		for _, payload := range []int{0, 1, 8, smallData - 1, smallData, 20_000} {
			all = append(all, frameOf(kind, payload)...)
			if kind != http2Data || payload < smallData {
				want++
			}
		}
	}
	for _, piece := range []int{1, 2, 3, 8, 9, 10, 11, 4096, len(all)} {
		f, got := frameCounter{skip: http2Preface}, 0
		for rest := all; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
			got += f.count(rest[:min(piece, len(rest))])
		}
		if got != want {
			t.Errorf("in pieces of %d bytes: %d frames, want %d", piece, got, want)
		}
	}
}

// resets begins and cancels calls until the connection ends, at most n.
func (d *dialed) resets(t *testing.T, n int) (begun int) {
	for ; begun < n; begun++ {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := d.Ask(ctx)
		cancel()
		if err != nil {
			break
		}
		synctest.Wait()
	}
	return begun
}

func TestRapidResetsEndTheConnection(t *testing.T) {
	slow.UnderRace(t)
	for _, guest := range []capability.Peer{{Tier: capability.Root}, guestOf(t, "lock a/*")} {
		inBubble(t, func(t *testing.T, w *world) {
			ours, s := newAuthority(t), new(*tiered)
			a, b := w.node("a", 1, ours.use), w.node("b", 2, ours.sees(guest, s))
			d, err := a.connect(t.Context(), &a.self, "b:1", id(2))
			if err != nil {
				t.Fatal(err)
			}
			defer d.close()
			if n := d.resets(t, unpaidBurst); n < unpaidBurst/8 || n >= unpaidBurst {
				t.Errorf("%d calls were reset", n)
			}
			if b.warnings("begins and resets calls", id(1).String(), guest.Name) != 1 {
				t.Error(b.log)
			}
			if _, _, err := w.node("c", 3, ours.use).Ask(t.Context(), "b:1", id(2), nil); err != nil {
				t.Errorf("another instance: %v", err)
			}
		})
	}
}

// A new connection gives a derived secret no new burst.
func TestRapidResetsOnManyConnections(t *testing.T) {
	slow.UnderRace(t)
	inBubble(t, func(t *testing.T, w *world) {
		ours, s, guest := newAuthority(t), new(*tiered), guestOf(t, "lock a/*")
		a, b := w.node("a", 1, ours.use), w.node("b", 2, ours.sees(guest, s))
		if !b.holds.unpaid.Spend(guest.Capability.Text(), time.Now(), unpaidOfSecret*unpaidBurst) {
			t.Fatal("the burst of a secret is smaller")
		}
		d, err := a.connect(t.Context(), &a.self, "b:1", id(2))
		if err != nil {
			t.Fatal(err)
		}
		defer d.close()
		if n := d.resets(t, 100); n > 2 {
			t.Errorf("%d calls were reset", n)
		}
		root := capability.Peer{Tier: capability.Root}
		(*s).peer.Store(&root)
		if _, _, err := w.node("c", 3, ours.use).Ask(t.Context(), "b:1", id(2), nil); err != nil {
			t.Errorf("an instance: %v", err)
		}
	})
}

// In a bubble no time passes, so the rate allows nothing more: answers alone pay.
func TestAnsweredQuestionsAreNotLimited(t *testing.T) {
	slow.UnderRace(t)
	inBubble(t, func(t *testing.T, w *world) {
		ours, s, guest := newAuthority(t), new(*tiered), guestOf(t, "lock a/*")
		a, b := w.node("a", 1, ours.use), w.node("b", 2, ours.sees(guest, s))
		ask := func(count, question, answer int) {
			t.Helper()
			b.ask = func(context.Context, Identity, []byte) ([]byte, error) { return make([]byte, answer), nil }
			for range count {
				if _, _, err := a.Ask(t.Context(), "b:1", id(2), make([]byte, question)); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			if !b.holds.unpaid.Spend(guest.Capability.Text(), time.Now(), unpaidOfSecret*unpaidBurst-64) {
				t.Fatalf("%d questions of %d bytes with answers of %d bytes leave less than the burst", count, question, answer)
			}
			b.holds.unpaid.Refund(guest.Capability.Text(), unpaidOfSecret*unpaidBurst-64)
		}
		ask(2_000, 10, 10)
		ask(5, questionBytes-100, 10)
		ask(2, 10, answerBytes-100)
		if b.warnings() != 0 {
			t.Error(b.log)
		}
	})
}

func TestOneSecretHasAPartOfTheConnections(t *testing.T) {
	slow.UnderRace(t)
	inBubble(t, func(t *testing.T, w *world) {
		ours, s := newAuthority(t), new(*tiered)
		first, second, root := guestOf(t, "lock a/*"), guestOf(t, "member"), capability.Peer{Tier: capability.Root}
		conns := func(c *Config) { c.Conns = 64 }
		b := w.node("b", 1, ours.sees(first, s), conns)
		next := 1
		links := func(as capability.Peer, most int) (open []*stream) {
			(*s).peer.Store(&as)
			for range most {
				next++
				a := w.node(fmt.Sprint("n", next), next, ours.use)
				stream := a.begin("b:1")
				if _, err := a.introduce(t.Context(), stream, "b:1", &a.self, 1, id(1), 1); err != nil {
					if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "derived secret") {
						t.Error(err)
					}
					stream.kill()
					break
				}
				open = append(open, stream)
			}
			synctest.Wait()
			return open
		}
		for range 3 {
			one := links(first, 10)
			if len(one) != 4 || b.Counts().Links != 4 {
				t.Errorf("%d links of one secret: %+v", len(one), b.Counts())
			}
			other, ours := links(second, 4), links(root, 8)
			if len(other) != 4 || len(ours) != 8 {
				t.Errorf("%d links of another secret, %d of instances", len(other), len(ours))
			}
			for _, each := range append(append(one, other...), ours...) {
				each.kill()
			}
			time.Sleep(10 * time.Second)
			if n, _ := b.holds.accepted.Users(); n != 0 || b.holds.accepted.Total() != 0 || b.Counts().Links != 0 {
				t.Fatalf("left behind: %d places, %+v", b.holds.accepted.Total(), b.Counts())
			}
		}
		if b.warnings("derived secret has too many", first.Name) == 0 {
			t.Error(b.log)
		}
	})
}

func TestOneSecretOpensFewConnectionsASecond(t *testing.T) {
	slow.UnderRace(t)
	inBubble(t, func(t *testing.T, w *world) {
		ours, s, guest := newAuthority(t), new(*tiered), guestOf(t, "lock a/*")
		b := w.node("b", 1, ours.sees(guest, s))
		b.holds.meetings.Spend(guest.Capability.Text(), time.Now(), meetingBurst)
		a := w.node("a", 2, ours.use)
		if _, _, err := a.Ask(t.Context(), "b:1", id(1), nil); !errors.Is(err, ErrFull) {
			t.Errorf("beyond the rate: %v", err)
		}
		synctest.Wait()
		if b.holds.accepted.Total() != 0 {
			t.Error("a refused connection keeps its place")
		}
		other, root := guestOf(t, "member"), capability.Peer{Tier: capability.Root}
		for i, peer := range []capability.Peer{other, root} {
			(*s).peer.Store(&peer)
			if _, _, err := w.node(fmt.Sprint("c", i), 3+i, ours.use).Ask(t.Context(), "b:1", id(1), nil); err != nil {
				t.Errorf("another secret: %v", err)
			}
		}
		(*s).peer.Store(&guest)
		time.Sleep(time.Second)
		if _, _, err := a.Ask(t.Context(), "b:1", id(1), nil); err != nil {
			t.Errorf("a second later: %v", err)
		}
	})
}

// A table of all places, found by reflection: one derived secret with any number of instances
// leaves a part to another, both leave a part to the root secret, and all can be given back.
func TestNoSecretTakesThePlacesOfOthers(t *testing.T) {
	c := Config{}.withDefaults()
	var h holdings
	h.init(&c)
	v, tables := reflect.ValueOf(&h).Elem(), 0
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Field(i).Type() != reflect.TypeFor[*fair.Places]() {
			continue
		}
		if tables++; name == "snapshots" || name == "states" {
			continue // a peer with a derived secret may not send snapshots
		}
		p := *(**fair.Places)(v.Field(i).Addr().UnsafePointer())
		var taken []fair.Identity
		step := 1
		if name == "held" || name == "told" || name == "heard" {
			step = 1 << 20
		}
		fill := func(secret string) (sum int) {
			for n := 0; n < 1<<16; n++ {
				who := fair.Identity{Instance: nodeid.ID{byte(n), byte(n >> 8), byte(len(secret)), 1}, Secret: secret}
				err := p.Take(who, step)
				for ; err == nil; err = p.Take(who, step) {
					sum += step
					taken = append(taken, who)
				}
				if full := (*fair.FullError)(nil); errors.As(err, &full) && full.Limit != "the limit of one instance" {
					break
				}
			}
			return sum
		}
		for range 2 {
			taken = nil
			a, b := fill("a"), fill("bb")
			fill("ccc")
			fill("dddd")
			fill("eeeee")
			if root := fill(""); a == 0 || b != a || root < (a+b)/4 {
				t.Errorf("%s: one secret takes %d, another %d, the root secret %d", name, a, b, root)
			}
			for _, who := range taken {
				p.Give(who, step)
			}
			if p.Total() != 0 {
				t.Errorf("%s: %d left", name, p.Total())
			}
		}
	}
	if tables < 9 {
		t.Errorf("found only %d tables", tables)
	}
}

func TestArrivalsOfASecretDisplaceOnlyItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		b := w.node("b", 1)
		calls := newArrivals()
		conn := func(n int, secret string) *accepted {
			raw := w.raw("b:1")
			t.Cleanup(func() { raw.Close() })
			c := &accepted{Conn: raw, listener: b.listener, guard: b.guard, gone: make(chan struct{})}
			c.owner = fair.Identity{Instance: id(n), Secret: secret}
			return c
		}
		root, other := conn(1, ""), conn(2, "other")
		ends := []func() bool{calls.enter(root, time.Minute), calls.enter(other, time.Minute)}
		for n := range 500 {
			c := conn(3+n%100, "greedy")
			ends = append(ends, calls.enter(c, time.Minute))
			t.Cleanup(func() { c.Close() })
		}
		for range arrivalsDerived {
			ends = append(ends, calls.enter(conn(2, "other"), time.Minute))
		}
		if isClosed(root.gone) {
			t.Error("the connection of an instance was closed")
		}
		if n := calls.counts["secret greedy"]; n > arrivalsEach {
			t.Errorf("%d calls of one secret", n)
		}
		if n := calls.counts[allDerived]; n > arrivalsDerived {
			t.Errorf("%d calls of all derived secrets", n)
		}
		for _, arrived := range ends {
			arrived()
		}
		if calls.count() != 0 || len(calls.counts) != 0 {
			t.Errorf("left behind: %d calls, %v", calls.count(), calls.counts)
		}
	})
}

// A peer that floods on one connection after the other gets no more connections for a while: by its
// secret, and by its host. Other secrets and hosts do.
func TestRepeatedFloodsAreShutOut(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		b, guest := w.node("b", 2), guestOf(t, "lock a/*")
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close(); far.Close() })
		flooder := &accepted{Conn: fromHost{near, "192.0.2.1"}, listener: b.listener, gone: make(chan struct{})}
		flooder.turn = b.listener.turns.begin(flooder.Conn.RemoteAddr(), flooder.gone)
		flooder.owner = claimant(id(1), guest)
		meets := func(secret string) bool { return b.holds.meetings.Spend(secret, time.Now(), 1) }
		for n := range meetingBurst / floodCost {
			if !meets(guest.Capability.Text()) && n < meetingBurst/floodCost-1 {
				t.Fatalf("after %d floods the secret is refused", n)
			}
			b.tally(flooder, flooder, Identity{Instance: id(1), Peer: guest}).flooded()
		}
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection that floods is still open: %v", err)
		}
		if meets(guest.Capability.Text()) || !meets("another") || !meets("") {
			t.Error("not exactly the secret of the peer that floods is refused")
		}
		all := b.listener.turns
		if mine, other := arrive(all, "192.0.2.1", 1), arrive(all, "192.0.2.2", 1); mine[0] == 0 || other[0] != 0 {
			t.Errorf("the host of the peer that floods waits %v, another host %v", mine[0], other[0])
		}
		time.Sleep(floodWait + time.Second)
		if !meets(guest.Capability.Text()) || arrive(all, "192.0.2.1", 1)[0] != 0 {
			t.Error("the peer is refused forever")
		}
	})
}
