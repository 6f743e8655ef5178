package e2e

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/outside"
)

// thin is a connection that reads at most rate bytes a second. If rate is zero, there is no limit.
type thin struct {
	net.Conn
	rate *atomic.Int64
}

func (c thin) Read(b []byte) (int, error) {
	rate := c.rate.Load()
	if rate == 0 {
		return c.Conn.Read(b)
	}
	n, err := c.Conn.Read(b[:min(len(b), max(int(rate/50), 1))])
	time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
	return n, err
}

type thinListener struct {
	net.Listener
	rate *atomic.Int64
}

func (l thinListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return thin{c, l.rate}, nil
}

// throttle limits how fast a node reads. It affects only nodes that are started afterwards.
func (f *fleet) throttle(rate *atomic.Int64) {
	f.alter = func(e *outside.World) {
		listen, dial := e.Listen, e.Dial
		e.Listen = func(a string) (net.Listener, error) {
			l, err := listen(a)
			if err != nil {
				return nil, err
			}
			return thinListener{l, rate}, nil
		}
		e.Dial = func(ctx context.Context, a string) (net.Conn, error) {
			c, err := dial(ctx, a)
			if err != nil {
				return nil, err
			}
			return thin{c, rate}, nil
		}
	}
}

// TestMemberThatReadsSlowly grants a thousand locks to a member over a slow connection. The member
// must get all answers, and no other member may be affected.
func TestMemberThatReadsSlowly(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		var rate atomic.Int64
		longer := func(c *mortise.Config) { c.SessionTTL = 10 * time.Second }
		f := startFleet(t, 3, longer)
		f.throttle(&rate)
		c := f.config(3, 3)
		longer(&c)
		f.start(3, c)
		f.ready()
		leader := f.leader()
		holder, other := (leader+1)%3, (leader+2)%3
		const burst = 1000
		theirs := f.lock(other, "theirs")
		var held [burst]*mortise.Lock
		var calls sync.WaitGroup
		for k := range held {
			calls.Go(func() { held[k] = f.lock(holder, fmt.Sprint(k)) })
		}
		calls.Wait()
		rate.Store(30_000)
		for k := range burst {
			calls.Go(func() { unlock(t, f.lock(3, fmt.Sprint(k))) })
		}
		// By now all requests wait, and the member knows the holder.
		time.Sleep(9 * time.Second)
		if got := f.nodes[3].Client.Status().Waiting; got != burst {
			t.Fatalf("%d calls wait", got)
		}
		began := time.Now()
		for _, l := range held {
			calls.Go(func() { unlock(t, l) })
		}
		slowest := time.Duration(0)
		for n := range 50 {
			asked := time.Now()
			unlock(t, f.lock(n%3, "quick"))
			slowest = max(slowest, time.Since(asked))
			time.Sleep(20 * time.Millisecond)
		}
		calls.Wait()
		t.Logf("the slow member had all %d after %v; the slowest lock of the others took %v", burst,
			time.Since(began), slowest)
		if slowest > 50*time.Millisecond {
			t.Errorf("beside a slow member a lock took %v", slowest)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("the slow member needed %v", took)
		}
		if err := theirs.Err(); err != nil {
			t.Errorf("a slow member cost another its lock: %v", err)
		}
		unlock(t, theirs)
		rate.Store(0)
		f.nothingLeft()
	})
}

// TestCallersThatNeverLook never reads from the channels of many locks. The loss of these locks
// must not block another member.
func TestCallersThatNeverLook(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		leader := f.leader()
		i, other := (leader+1)%3, (leader+2)%3
		const many = 300
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var held [many]*mortise.Lock
		var calls sync.WaitGroup
		for k := range held {
			calls.Go(func() {
				held[k] = f.lock(i, fmt.Sprint(k))
				_ = held[k].Done()
				if k%2 == 0 {
					_ = held[k].Context(ctx)
				}
			})
		}
		calls.Wait()
		f.isolate(i)
		time.Sleep(10 * time.Second)
		for k := range held {
			unlock(t, f.lock(other, fmt.Sprint(k)))
			if held[k].Err() == nil {
				t.Fatal("two hold the lock")
			}
		}
		f.rejoin(i)
		f.ready()
		synctest.Wait()
		f.worksEverywhere()
	})
}
