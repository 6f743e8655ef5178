package e2e

import (
	"context"
	"log/slog"
	"math"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/outside"
)

// traffic counts what one instance sends and receives.
type traffic struct{ writes, sent, received atomic.Int64 }

// perSecond is the traffic of one instance in a second.
type perSecond struct{ writes, sent, received float64 }

// counted is a connection whose traffic is counted at one end.
type counted struct {
	net.Conn
	of *traffic
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.of.writes.Add(1)
	c.of.sent.Add(int64(n))
	return n, err
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.of.received.Add(int64(n))
	return n, err
}

type countedListener struct {
	net.Listener
	of *traffic
}

func (l countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return counted{c, l.of}, nil
}

// measured starts n instances, three of which vote, with the traffic of each.
func measured(t *testing.T, n int) (f *fleet, all []*traffic) {
	f = newFleet(t)
	f.alter = func(e *outside.World) {
		of := new(traffic)
		all = append(all, of)
		dial, listen := e.Dial, e.Listen
		e.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			c, err := dial(ctx, address)
			if err != nil {
				return nil, err
			}
			return counted{c, of}, nil
		}
		e.Listen = func(address string) (net.Listener, error) {
			l, err := listen(address)
			if err != nil {
				return nil, err
			}
			return countedListener{l, of}, nil
		}
	}
	for i := range n {
		c := f.config(i, 3)
		c.SessionTTL, c.Logger = 0, slog.New(slog.DiscardHandler)
		c.Replicas, c.Founders = 0, []string{"node-0", "node-1", "node-2"}
		f.start(i, c)
	}
	f.ready()
	time.Sleep(30 * time.Second)
	return f, all
}

// during measures each instance for a virtual minute.
func during(all []*traffic) (rates []perSecond) {
	const length = time.Minute
	synctest.Wait()
	for _, of := range all {
		of.writes.Store(0)
		of.sent.Store(0)
		of.received.Store(0)
	}
	time.Sleep(length)
	synctest.Wait()
	for _, of := range all {
		rates = append(rates, perSecond{float64(of.writes.Load()) / length.Seconds(),
			float64(of.sent.Load()) / length.Seconds(), float64(of.received.Load()) / length.Seconds()})
	}
	return rates
}

// TestHowTrafficGrows holds the formulas of docs/SPEED.md, "How costs grow": at rest the leader
// sends and receives a fixed number of bytes for each instance, and an instance that does not vote
// pays nothing for the others. MORTISE_INSTANCES is one more size, such as 10000.
func TestHowTrafficGrows(t *testing.T) {
	slow.UnderRace(t)
	sizes := []int{8, 16, 64}
	if n, err := strconv.Atoi(os.Getenv("MORTISE_INSTANCES")); err == nil {
		sizes = append(sizes, n)
	}
	within := func(what string, got, want float64) {
		if t.Helper(); math.Abs(got-want) > 0.15*want {
			t.Errorf("%s: %.0f, want about %.0f", what, got, want)
		}
	}
	for _, n := range sizes {
		bubble(t, func(t *testing.T) {
			f, all := measured(t, n)
			rates := during(all)
			leader, last := rates[f.leader()], rates[n-1]
			t.Logf("%d instances, a second: the leader %+.1f, the last %+.1f", n, leader, last)
			guests := float64(n - 3) // without a vote
			within("writes of the leader", leader.writes, 44+1.1*guests)
			within("bytes from the leader", leader.sent, 2200+58*guests)
			within("bytes to the leader", leader.received, 2100+50*guests)
			if last.writes > 1.5 || last.sent > 60 || last.received > 90 {
				t.Errorf("an instance that does not vote has %+.1f", last)
			}
		})
	}
}

// TestWhatRestsMakesNoTraffic checks that 1,000 locks, 1,000 waiters and 100 watches at rest make
// less than two messages a second together.
func TestWhatRestsMakesNoTraffic(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f, all := measured(t, 5)
		before := during(all)
		same := func(what string) {
			for i, now := range during(all) {
				if was := before[i]; now.writes > 1.1*was.writes+2 || now.sent > 1.1*was.sent+200 {
					t.Errorf("%s: instance %d has %+.1f, and had %+.1f", what, i, now, was)
				}
			}
		}
		held := []*mortise.Lock{f.lock(4, "queue")}
		for i := range 1000 {
			held = append(held, f.lock(4, "held-"+strconv.Itoa(i)))
		}
		same("held locks")
		ctx, end := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		for range 1000 {
			calls.Go(func() { _, _ = f.nodes[3].Lock(ctx, "queue") })
		}
		time.Sleep(5 * time.Second)
		same("waiters")
		for range 100 {
			calls.Go(func() {
				for range f.nodes[3].Watch(ctx, "none/", 0) {
				}
			})
		}
		time.Sleep(5 * time.Second)
		same("watches")
		end()
		calls.Wait()
		for _, l := range held {
			unlock(t, l)
		}
	})
}

// TestALongQueue serves 2,000 waiters of one key, or MORTISE_WAITERS, in order. A queue holds
// 65,536.
func TestALongQueue(t *testing.T) {
	slow.UnderRace(t)
	waiters := 2000
	if n, err := strconv.Atoi(os.Getenv("MORTISE_WAITERS")); err == nil {
		waiters = n
	}
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, func(c *mortise.Config) {
			c.SessionTTL, c.MaxSessionBytes, c.MaxGroupBytes = 0, 1<<30, 2<<30
			c.History = nil
		})
		first := f.lock(f.follower(), "queue")
		empty := heap()
		var calls sync.WaitGroup
		order := make(chan mortise.Token, waiters)
		for i := range waiters {
			calls.Go(func() {
				l, err := f.nodes[i%3].Lock(t.Context(), "queue")
				if err != nil {
					t.Error(err)
					return
				}
				order <- l.Token()
				if err := l.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(10 * time.Second)
		full := heap()
		unlock(t, first)
		calls.Wait()
		close(order)
		last := first.Token()
		for token := range order {
			if token <= last {
				t.Errorf("token %d after %d", token, last)
			}
			last = token
		}
		t.Logf("%d waiters: %d B each on the heaps and stacks of all", waiters, (full-empty)/uint64(waiters))
	})
}

// heap returns the bytes of the heap and of the stacks that are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
