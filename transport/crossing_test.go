package transport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// lag delays the opening of a connection and each read from it.
type lag struct {
	net.Conn
	wait func()
}

func (l lag) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	l.wait()
	return n, err
}

func lagging(rng *rand.Rand, most time.Duration) func(*Config) {
	wait := func() {
		if d := time.Duration(rng.Int64N(int64(most))); d > most/4 {
			time.Sleep(d)
		}
	}
	return func(c *Config) {
		dial := c.Dial
		c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			wait()
			conn, err := dial(ctx, addr)
			wait()
			if err != nil {
				return nil, err
			}
			return lag{conn, wait}, nil
		}
		c.Listener = lagListener{c.Listener, wait}
	}
}

type lagListener struct {
	net.Listener
	wait func()
}

func (l lagListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return lag{conn, l.wait}, nil
}

// If two streams cross, only one remains. The handlers get nothing from the discarded stream, and
// every frame arrives once and in order.
func TestCrossingDials(t *testing.T) {
	for seed := range uint64(200) {
		inBubble(t, func(t *testing.T, w *world) {
			rng := rand.New(rand.NewPCG(seed, 1))
			most := time.Duration(1+rng.Int64N(8)) * time.Millisecond
			source := func(stream uint64) *rand.Rand { return rand.New(&lockedSource{src: rand.NewPCG(seed, stream)}) }
			a, b := w.node("a", 1, lagging(source(2), most)), w.node("b", 2, lagging(source(3), most))
			var want strings.Builder
			for i := range 40 {
				a.send(b, fmt.Sprint(i, " "))
				b.send(a, fmt.Sprint(i, " "))
				fmt.Fprint(&want, i, " ")
				if rng.IntN(3) > 0 {
					time.Sleep(time.Duration(rng.Int64N(int64(most))))
				}
			}
			time.Sleep(time.Second)
			a.wantCommands(fmt.Sprint("seed ", seed), b, want.String())
			b.wantCommands(fmt.Sprint("seed ", seed), a, want.String())
			ca, cb := a.Counts(), b.Counts()
			if ca.Links != 1 || cb.Links != 1 || ca.Accepted+cb.Accepted != 1 || ca.Dialing+cb.Dialing != 0 {
				t.Fatalf("seed %d: more than one stream is left:\n%+v\n%+v", seed, ca, cb)
			}
		})
	}
}

func TestCrossingDialsWithMuchToSay(t *testing.T) {
	slow.UnderRace(t)
	for seed := range uint64(30) {
		inBubble(t, func(t *testing.T, w *world) {
			rng := rand.New(rand.NewPCG(seed, 4))
			change := func(*Config) {}
			if seed%3 == 0 {
				change = newAuthority(t).use
			}
			a, b := w.node("a", 1, change), w.node("b", 2, change)
			w.net.SetLatency(time.Duration(rng.IntN(500)) * time.Millisecond)
			total := map[*node]int{}
			peer := map[*node]nodeid.ID{a: id(2), b: id(1)}
			for range 6 {
				from, to := a, b
				if rng.IntN(2) == 0 {
					from, to = b, a
				}
				n := []int{1, helloBytes - 100, helloBytes + 1, frameBytes, 3 << 20}[rng.IntN(5)]
				from.send(to, strings.Repeat("x", n))
				total[to] += n
				time.Sleep(time.Duration(rng.IntN(3)*rng.IntN(400)) * time.Millisecond)
			}
			time.Sleep(time.Minute)
			for _, n := range []*node{a, b} {
				if text, downs := commands(n.seen(), peer[n]); len(text) != total[n] || downs != 0 {
					t.Errorf("seed %d: %d of %d bytes, %d downs", seed, len(text), total[n], downs)
				}
			}
		})
	}
}

// Both instances send their hellos before a hello arrives.
func TestStreamOfTheLowerInstanceWins(t *testing.T) {
	for _, slow := range []string{"a", "b"} {
		t.Run(slow+" is slow to answer", func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				ms := func(name string) time.Duration {
					if name == slow {
						return 30 * time.Millisecond
					}
					return 10 * time.Millisecond
				}
				slowly := func(name string) func(*Config) {
					return func(c *Config) { c.Listener = lagListener{c.Listener, func() { time.Sleep(ms(name)) }} }
				}
				a, b := w.node("a", 1, slowly("a")), w.node("b", 2, slowly("b"))
				a.send(b, "x")
				b.send(a, "y")
				time.Sleep(time.Second)
				synctest.Wait()
				a.wantCommands("a", b, "y")
				b.wantCommands("b", a, "x")
				if a.Counts().Accepted != 0 || b.Counts().Accepted != 1 {
					t.Fatalf("the stream that a dialed should be left: a accepted %d, b accepted %d",
						a.Counts().Accepted, b.Counts().Accepted)
				}
			})
		})
	}
}

func TestDialThatHangsGivesWayToThePeers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		hang := func(c *Config) {
			c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}
		a, b := w.node("a", 1, hang), w.node("b", 2)
		a.send(b, "x")
		synctest.Wait()
		b.send(a, "y")
		time.Sleep(100 * time.Millisecond)
		a.wantCommands("a", b, "y")
		b.wantCommands("b", a, "x")
	})
}
