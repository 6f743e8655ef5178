package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// All connections for questions, snapshots and gossip end, both the dialed and the accepted ones.
// No call to or from the old incarnation is answered.
func TestNewLifeEndsAllConnections(t *testing.T) {
	secured(t, func(t *testing.T, w *world, use func(*Config), _ func(int) *forger) {
		a, b := w.node("a", 1, use), w.node("b", 2, use)
		gate := make(chan struct{})
		late := func(context.Context, Identity, []byte) ([]byte, error) {
			<-gate // waits even after the call's context has ended
			return []byte("late"), nil
		}
		a.ask, b.ask = late, late
		results := make(chan string, 3)
		ask := func(from, to *node) {
			answer, _, err := from.Ask(t.Context(), to.identity.Addr, to.identity.Instance, []byte("who"))
			results <- fmt.Sprintf("%s %t %t", answer, errors.Is(err, ErrSilent), errors.Is(err, ErrOther))
		}
		b.snapshot = func(Identity, *raftpb.Message) error { <-gate; return nil }
		go ask(a, b)
		go ask(b, a)
		go func() {
			err := a.SendSnapshot(t.Context(), b.peer(), snapshotMessage(a, b, 10))
			results <- fmt.Sprintf(" %t %t", errors.Is(err, ErrSilent), errors.Is(err, ErrOther))
		}()
		x, y := streamPair(t, a, b)
		_ = a.Gossip().WriteTo([]byte("packet"), "b:1")
		_ = b.Gossip().WriteTo([]byte("packet"), "a:1")
		synctest.Wait()
		if c := a.Counts(); c.Shared != 1 || c.Accepted != 1 {
			t.Fatalf("the test is wrong: %+v", c)
		}
		began := time.Now()
		a.self.Key = key(3)
		a.identify()
		for range 3 {
			select {
			case got := <-results:
				if got != " true false" {
					t.Errorf("got %q", got)
				}
			case <-time.After(time.Minute):
				t.Error("a call goes on")
			}
		}
		for _, conn := range []net.Conn{x, y} {
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := conn.Read(make([]byte, 1)); err == nil || err == io.EOF {
				t.Errorf("a byte stream: %v", err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
		close(gate)
		synctest.Wait()
		if c := b.Counts(); c.Accepted != 0 || a.Counts().Accepted != 0 {
			t.Errorf("left behind: %+v\n%+v", a.Counts(), c)
		}
		a.ask, b.ask = nil, nil
		if _, from, err := b.Ask(t.Context(), "a:1", id(3), nil); err != nil || from != a.identity {
			t.Errorf("asked anew: %v, %v", from, err)
		}
		if _, _, err := b.Ask(t.Context(), "a:1", id(1), nil); !errors.Is(err, ErrOther) {
			t.Errorf("the old incarnation is asked: %v", err)
		}
	})
}

// The dialed connection is not used, and nothing is sent on it.
func TestNewLifeDuringADial(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		var heard []Identity
		b.ask = func(_ context.Context, from Identity, _ []byte) ([]byte, error) {
			heard = append(heard, from)
			return nil, nil
		}
		w.net.Cut("a", "b")
		results := make(chan error, 2)
		go func() { _, _, err := a.Ask(t.Context(), "b:1", nodeid.ID{}, nil); results <- err }()
		go func() { results <- a.SendSnapshot(t.Context(), b.peer(), snapshotMessage(a, b, 10)) }()
		a.sendTo(b.peer())
		synctest.Wait()
		a.self.Key = key(3)
		a.identify()
		w.net.Heal("a", "b")
		for range 2 {
			if err := <-results; !errors.Is(err, ErrSilent) {
				t.Error(err)
			}
		}
		if _, _, err := a.Ask(t.Context(), "b:1", nodeid.ID{}, nil); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if len(heard) != 1 || heard[0] != a.identity || len(b.seen())+len(b.snapshots) != 0 {
			t.Errorf("b has heard of %+v", heard)
		}
	})
}

// Links send the change, the next call opens a new connection, and calls in progress continue.
func TestNewStandingReachesCalls(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		newborn := func(c *Config) { c.Self.Group, c.Self.Raft, c.Self.Addr = 0, 0, "" }
		a, b := w.node("a", 1, newborn), w.node("b", 2)
		var last Identity
		gate := make(chan struct{})
		b.ask = func(_ context.Context, from Identity, question []byte) ([]byte, error) {
			if string(question) == "wait" {
				<-gate
			}
			last = from
			return []byte("ok"), nil
		}
		waited := make(chan error, 1)
		go func() { _, _, err := a.Ask(t.Context(), "b:1", id(2), []byte("wait")); waited <- err }()
		synctest.Wait()
		for _, change := range []func(){func() { a.self.Group = 7 }, func() { a.self.Raft = 101 },
			func() { a.self.Addr = "c:1" }} {
			change()
			a.identify()
			for range 3 {
				a.identify() // changes nothing, so no new connection is needed
				if _, _, err := a.Ask(t.Context(), "b:1", id(2), nil); err != nil || last != a.identity {
					t.Fatalf("b hears of %+v, %v; want %+v", last, err, a.identity)
				}
			}
		}
		if n := b.Counts().Accepted; n != 4 {
			t.Errorf("%d connections for four identities", n)
		}
		close(gate)
		if err := <-waited; err != nil {
			t.Error(err)
		}
		time.Sleep(sharedCheck)
		synctest.Wait()
		if n := b.Counts().Accepted; n != 1 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// Connections are opened in both directions over a slow network. A call that begins in one
// incarnation is sent and answered in that incarnation, or not at all.
func TestNewLivesAgainstHandshakes(t *testing.T) {
	slow.UnderRace(t)
	for seed := range uint64(20 / slowly) {
		inBubble(t, func(t *testing.T, w *world) {
			rng := rand.New(rand.NewPCG(seed, 7))
			w.net.SetLatency(time.Duration(rng.IntN(4)) * time.Millisecond)
			a, b := w.node("a", 1), w.node("b", 2)
			var mu sync.Mutex
			life := 1 // number of a's key; later incarnations use the keys 3, 4 and so on
			now := func() int { mu.Lock(); defer mu.Unlock(); return life }
			order := map[nodeid.ID]int{id(1): 1}
			for n := 3; n < 40; n++ {
				order[id(n)] = n
			}
			answers := 0
			b.ask = func(_ context.Context, from Identity, question []byte) ([]byte, error) {
				if string(question) != fmt.Sprint(order[from.Instance]) {
					t.Errorf("seed %d: a question of incarnation %s comes from incarnation %d", seed, question, order[from.Instance])
				}
				return []byte("ok"), nil
			}
			tick := func() { time.Sleep(time.Until(time.Now().Truncate(time.Millisecond).Add(time.Millisecond))) }
			stop := make(chan struct{})
			var asking sync.WaitGroup
			for range 3 {
				asking.Go(func() {
					for !isClosed(stop) {
						asked := now()
						_, _, err := a.Ask(t.Context(), "b:1", nodeid.ID{}, fmt.Append(nil, asked))
						if err == nil {
							mu.Lock()
							answers++
							mu.Unlock()
						}
						tick()
					}
				})
				asking.Go(func() {
					for !isClosed(stop) {
						asked := now()
						_, from, err := b.Ask(t.Context(), "a:1", nodeid.ID{}, nil)
						if err == nil && order[from.Instance] < asked {
							t.Errorf("seed %d: incarnation %d is over and has answered, asked in %d", seed,
								order[from.Instance], asked)
						}
						_ = b.Send(nodeid.Endpoint{ID: id(asked), Addr: "a:1"}, Frame{Commands: []byte("x")})
						tick()
					}
				})
			}
			time.Sleep(time.Millisecond / 2)
			for n := 3; n < 40; n++ {
				// The sleep never ends at the moment when a question begins.
				time.Sleep(time.Duration(rng.IntN(80)) * time.Millisecond)
				mu.Lock() // no question begins while mu is held
				a.self.Key = key(n)
				a.identify()
				life = n
				mu.Unlock()
			}
			close(stop)
			asking.Wait()
			time.Sleep(5 * time.Minute)
			if answers == 0 {
				t.Error("no question was answered")
			}
			if ca, cb := a.Counts(), b.Counts(); ca.Accepted+cb.Accepted > 1 ||
				ca.Shared+cb.Shared+ca.Dialing+cb.Dialing != 0 {
				t.Errorf("seed %d: left behind:\n%+v\n%+v", seed, ca, cb)
			}
		})
	}
}

func TestCloseDuringAHello(t *testing.T) {
	secured(t, func(t *testing.T, w *world, use func(*Config), forge func(int) *forger) {
		a, evil := w.node("a", 1, use), forge(9)
		w.raw("a:1")        // silent, with or without TLS
		evil.dial(w, "a:1") // sends no hello
		half, binding := evil.dial(w, "a:1")
		own := evil.says(func(*wire.Hello) {})
		part := speech(t, func(s *stream) error {
			return s.greet(greeting(evil.key, dialer, binding, own,
				own))
		})[len(linkPreface):]
		if _, err := half.conn.Write(part[:len(part)/2]); err != nil {
			t.Fatal(err)
		}
		// This peer accepts a dial but never answers.
		evil.listen(w, "b:1", func(heard) *wire.Greeting { time.Sleep(time.Minute); return &wire.Greeting{} })
		a.sendTo(nodeid.Endpoint{ID: id(2), Addr: "b:1"})
		asked := make(chan error, 1)
		go func() { _, _, err := a.Ask(context.Background(), "b:1", id(2), nil); asked <- err }()
		synctest.Wait()
		began := time.Now()
		a.Close()
		if took := time.Since(began); took > linger {
			t.Errorf("Close took %v", took)
		}
		if err := <-asked; !errors.Is(err, ErrClosed) && !errors.Is(err, ErrSilent) {
			t.Error(err)
		}
		if c := a.Counts(); c.Accepted+c.Strangers+c.Shared+c.Links+c.Dialing+c.Ending != 0 {
			t.Errorf("left behind: %+v", c)
		}
	})
}
