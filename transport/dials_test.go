package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// perSecond is the limit of dials in any second.
const perSecond = ordinaryRate + ordinaryBurst + preferredRate + preferredBurst

// outside is a network of addresses at which usually no process listens. It records when dials
// begin.
type outside struct {
	mu     sync.Mutex
	began  []time.Time
	flying int
	most   int
	hangs  func(addr string) (silent, deaf bool) // silent: dials hang; deaf: dials get no data
}

// through makes a node dial unknown addresses through o.
func (o *outside) through(c *Config) {
	inside := c.Dial
	c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
		o.mu.Lock()
		o.began = append(o.began, time.Now())
		o.flying++
		o.most = max(o.most, o.flying)
		o.mu.Unlock()
		if len(addr) < 4 { // node of the test's own network
			defer o.over()
			return inside(ctx, addr)
		}
		silent, deaf := o.hangs(addr)
		if deaf {
			near, _ := net.Pipe()
			return &deafConn{Conn: near, over: sync.OnceFunc(o.over)}, nil
		}
		defer o.over()
		if silent {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, syscall.ECONNREFUSED
	}
}

func (o *outside) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flying--
}

type deafConn struct {
	net.Conn
	over func()
}

func (c *deafConn) Close() error {
	c.over()
	return c.Conn.Close()
}

func (o *outside) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.began)
}

// busiest returns three counts of dials: those that began in the busiest second, those that began
// in the last second, and the most that were in flight at once.
func (o *outside) busiest() (most, last, flying int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	slices.SortFunc(o.began, time.Time.Compare)
	for i, from := 0, 0; i < len(o.began); i++ {
		for o.began[i].Sub(o.began[from]) >= time.Second {
			from++
		}
		most = max(most, i-from+1)
		last = i - from + 1
	}
	return most, last, o.most
}

func addrs500() (all []string) {
	for i := range 500 {
		all = append(all, fmt.Sprintf("10.0.%d.%d:1", i/250, i%250))
	}
	return all
}

// worlds maps names to the behavior of 500 addresses.
var worlds = map[string]func(addr string) (silent, deaf bool){
	"all silent":  func(string) (bool, bool) { return true, false },
	"all refuse":  func(string) (bool, bool) { return false, false },
	"all deaf":    func(string) (bool, bool) { return false, true },
	"half silent": func(addr string) (bool, bool) { return addr[len(addr)-3]%2 == 0, false },
	"at random":   func(string) (bool, bool) { n := rand.IntN(3); return n == 0, n == 1 },
}

func demand(t *testing.T, a *node, all []string) (asking *sync.WaitGroup) {
	asking = new(sync.WaitGroup)
	for i, addr := range all {
		for kind := range 4 {
			asking.Go(func() {
				for t.Context().Err() == nil {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					switch kind {
					case 0:
						_, _, _ = a.Ask(ctx, addr, nodeid.ID{}, []byte("x"))
					case 1:
						_ = a.Send(nodeid.Endpoint{ID: id(10 + i%100), Addr: addr}, Frame{Commands: []byte("x")})
					case 2:
						_ = a.Gossip().WriteTo([]byte("x"), addr)
					case 3:
						_ = a.SendSnapshot(ctx, nodeid.Endpoint{ID: id(2), Addr: addr}, snapshotMessage(a, a, 1))
					}
					cancel()
					select {
					case <-time.After(500 * time.Millisecond):
					case <-t.Context().Done():
					}
				}
			})
		}
	}
	return asking
}

func TestDialsOfASecondAreBounded(t *testing.T) {
	slow.UnderRace(t)
	for name, hangs := range worlds {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				o := &outside{hangs: hangs}
				a := w.node("a", 1, o.through)
				all := addrs500()
				a.Prefer(all[:maxPreferred])
				demand(t, a, all)
				time.Sleep(6 * time.Second)
				if most, last, flying := o.busiest(); most > perSecond || most < dialsOrdinary || last == 0 ||
					flying > maxDials {
					t.Errorf("%d dials began in one second, at most %d may; %d in the last; %d in flight", most,
						perSecond, last, flying)
				} else {
					t.Logf("%d dials in the busiest second, %d in the last, %d in flight", most, last, flying)
				}
				if n := a.dials.remembered(); n > maxPauses {
					t.Errorf("%d pauses are remembered", n)
				}
				a.Close()
			})
		})
	}
}

// A preferred address is reached within a second while hundreds of other dials hang, and within
// about a second after an outage.
func TestPreferredAddressesAreReached(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		o := &outside{hangs: worlds["all deaf"]}
		a, b := w.node("a", 1, o.through, longest), w.node("b", 2)
		a.Prefer([]string{"b:1"})
		demand(t, a, addrs500())
		time.Sleep(time.Second) // the handshakes of the first dials may take four more seconds
		began := time.Now()
		a.send(b, "x")
		if _, _, err := a.Ask(t.Context(), "b:1", id(2), nil); err != nil || time.Since(began) > time.Second {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		b.wantCommands("among hanging dials", a, "x")
		w.net.Crash("b")
		b.Close()
		w.net.Cut("a", "b")
		time.Sleep(100 * time.Millisecond)
		for range 150 {
			_ = a.Send(b.peer(), Frame{Commands: []byte("y")})
			time.Sleep(100 * time.Millisecond)
		}
		w.net.Heal("a", "b")
		b = w.node("b", 3)
		began = time.Now()
		for !a.Linked(id(3)) {
			_ = a.Send(b.peer(), Frame{Commands: []byte("y")})
			time.Sleep(10 * time.Millisecond)
			if time.Since(began) > connectTime+preferredLast {
				t.Fatal("not reached after the outage")
			}
		}
		t.Logf("reached %v after the outage", time.Since(began))
		a.Close()
	})
}

// A pause applies to questions and to links.
func TestOneFailureIsOfTheAddress(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		o := &outside{hangs: worlds["all silent"]}
		a := w.node("a", 1, o.through, longest)
		ctx, cancel := context.WithTimeout(t.Context(), connectTime+time.Millisecond)
		defer cancel()
		if _, _, err := a.Ask(ctx, "10.0.0.1:1", nodeid.ID{}, nil); !errors.Is(err, ErrSilent) {
			t.Fatal(err)
		}
		began := time.Now()
		if err := a.Send(nodeid.Endpoint{ID: id(9), Addr: "10.0.0.1:1"}, Frame{Commands: []byte("x")}); !errors.Is(err,
			ErrNoLink) {
			t.Errorf("a link: %v", err)
		}
		if err := a.SendSnapshot(t.Context(), nodeid.Endpoint{ID: id(9), Addr: "10.0.0.1:1"},
			snapshotMessage(a, a, 1)); !errors.Is(err, ErrSilent) {
			t.Errorf("a snapshot: %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), pauseFirst/2)
		defer cancel()
		if _, _, err := a.Ask(ctx, "10.0.0.1:1", nodeid.ID{}, nil); !errors.Is(err, ErrSilent) || time.Since(began) > 0 {
			t.Errorf("a question that cannot wait: %v after %v", err, time.Since(began))
		}
		if o.count() != 1 {
			t.Errorf("%d dials", o.count())
		}
		a.Prefer([]string{"10.0.0.1:1"}) // the pause of a newly preferred address is shortened
		if _, _, err := a.Ask(t.Context(), "10.0.0.1:1", nodeid.ID{}, nil); !errors.Is(err, ErrSilent) ||
			o.count() != 2 {
			t.Errorf("a question that waits: %v, %d dials", err, o.count())
		}
	})
}

// A question fails with ErrRefused only because of a dial that began after the question was asked.
func TestRefusalsAreNotRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		refuse := make(chan struct{})
		var mu sync.Mutex
		var dialed time.Time
		refusedBy := func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return dialed
		}
		a := w.node("a", 1, longest, func(c *Config) {
			c.Dial = func(context.Context, string) (net.Conn, error) {
				mu.Lock()
				dialed = time.Now()
				mu.Unlock()
				<-refuse
				return nil, syscall.ECONNREFUSED
			}
		})
		var asking sync.WaitGroup
		for range 3 { // one question before the dial, two while the dial is in flight
			put := time.Now()
			asking.Go(func() {
				if _, _, err := a.Ask(t.Context(), "b:1", nodeid.ID{}, nil); !errors.Is(err, ErrRefused) {
					t.Error(err)
				}
				if last := refusedBy(); last.Before(put) {
					t.Errorf("put at %v, and refused by a dial of %v", put, last)
				}
			})
			synctest.Wait()
			time.Sleep(100 * time.Millisecond)
		}
		close(refuse)
		asking.Wait()
		for range 20 { // each question needs a new dial; at least two dials in each second
			put := time.Now()
			if _, _, err := a.Ask(t.Context(), "b:1", nodeid.ID{}, nil); !errors.Is(err, ErrRefused) {
				t.Fatal(err)
			}
			if last := refusedBy(); last.Before(put) || time.Since(put) > pauseAnswered {
				t.Fatalf("put at %v, refused at %v by a dial of %v", put, time.Now(), last)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), pauseAnswered/2)
		defer cancel()
		if _, _, err := a.Ask(ctx, "b:1", nodeid.ID{}, nil); !errors.Is(err, ErrSilent) || errors.Is(err, ErrRefused) {
			t.Errorf("a question that cannot wait: %v", err)
		}
	})
}

func TestInboundConnectionEndsAPause(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1, longest), w.node("b", 2)
		w.net.Cut("a", "b")
		for range 6 { // afterwards the pause is eight seconds
			if _, _, err := a.Ask(t.Context(), "b:1", nodeid.ID{}, nil); !errors.Is(err, ErrSilent) {
				t.Fatal(err)
			}
		}
		w.net.Heal("a", "b")
		if err := a.Send(b.peer(), Frame{Commands: []byte("x")}); !errors.Is(err, ErrNoLink) {
			t.Fatalf("in the pause: %v", err)
		}
		if _, _, err := b.Ask(t.Context(), "a:1", nodeid.ID{}, nil); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, _, err := a.Ask(t.Context(), "b:1", nodeid.ID{}, nil); err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// A waiting dial whose callers have given up leaves the queue. A dial that has begun continues.
func TestLateDialsAreUsed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		o := &outside{hangs: worlds["all silent"]}
		a := w.node("a", 1, o.through)
		b := w.node("b", 2)
		w.net.Cut("a", "b")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, _, err := a.Ask(ctx, "b:1", nodeid.ID{}, nil); !errors.Is(err, ErrSilent) {
			t.Fatal(err)
		}
		w.net.Heal("a", "b")
		synctest.Wait()
		if _, _, err := a.Ask(t.Context(), "b:1", id(2), nil); err != nil || o.count() != 1 ||
			b.Counts().Accepted != 1 {
			t.Errorf("%v, %d dials", err, o.count())
		}
		for _, addr := range addrs500()[:100] {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				_, _, _ = a.Ask(ctx, addr, nodeid.ID{}, nil)
			}()
		}
		time.Sleep(200 * time.Millisecond)
		if n := a.Counts().Shared; n != 1+dialsOrdinary || o.count() != 1+dialsOrdinary {
			t.Errorf("%d dials have begun, %d are kept", o.count(), n)
		}
	})
}

func TestPausesAreBounded(t *testing.T) {
	p, now := pauses{known: map[pauseKey]*pause{}}, time.Now()
	key := func(i int) pauseKey { return pauseKey{addr: fmt.Sprint(i)} }
	for i := range 3 * maxPauses {
		p.failed(key(i), ErrSilent, pauseFirst, maxPause, now, 1)
	}
	if len(p.known) != maxPauses || p.order.Len() != maxPauses || p.in(key(2*maxPauses-1), now) != nil ||
		p.in(key(2*maxPauses), now.Add(1)) == nil {
		t.Errorf("%d pauses", len(p.known))
	}
	for _, want := range []time.Duration{250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000} {
		p.failed(key(0), ErrSilent, pauseFirst, maxPause, now, 1<<20*uint64(maxPause)-1)
		if got := p.known[key(0)].until.Sub(now); got != want*time.Millisecond {
			t.Errorf("%v, want %d ms", got, want)
		}
		now = p.known[key(0)].until
	}
	now = now.Add(pauseKept)
	p.failed(key(0), ErrSilent, pauseFirst, maxPause, now, 0)
	if b := p.known[key(0)]; b.delay != pauseFirst || len(p.known) != 1 {
		t.Errorf("after a while: %v, %d pauses", b.delay, len(p.known))
	}
}
