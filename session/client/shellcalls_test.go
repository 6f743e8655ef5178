package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

func (w *world) sends() *atomic.Int64 {
	n := new(atomic.Int64)
	w.refuse.Store(new(func(what string) bool {
		if what == "send" {
			n.Add(1)
		}
		return false
	}))
	return n
}

// TestShellWhatAClientIsTold checks that each call of a Client's methods takes effect immediately.
func TestShellWhatAClientIsTold(t *testing.T) {
	one, two, id := nodeidtest.ID(1), nodeidtest.ID(2), nodeidtest.ID(100)
	attached := func(w *world, c *Client) { // within a second
		w.t.Helper()
		began := time.Now()
		if err := c.WaitAttached(w.t.Context()); err != nil || time.Since(began) > time.Second {
			w.t.Errorf("attached after %v: %v", time.Since(began), err)
		}
	}
	for name, f := range map[string]func(w *world, c *Client){
		"other voters": func(w *world, c *Client) {
			w.isolate(two, true)
			c.SetTargets([]nodeid.Endpoint{{ID: two}})
			c.Down(one)
			time.Sleep(worldTTL)
			if s := c.Status(); s.Phase == Attached {
				w.t.Errorf("it asks a voter that is not a target: %+v", s)
			}
			c.SetTargets([]nodeid.Endpoint{{ID: one}, {ID: two}})
			attached(w, c)
		},
		"the end of a stream": func(w *world, c *Client) {
			w.isolate(one, true)
			w.elect(two)
			synctest.Wait()
			c.Down(one)
			synctest.Wait()
			if s := c.Status(); s.Leader.ID == one {
				w.t.Errorf("it stays with a leader whose stream has ended: %+v", s)
			}
			attached(w, c)
		},
		"that it leaves": func(w *world, c *Client) {
			c.Leaving()
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			if all := w.machine.Sessions(); len(all) != 1 || !all[0].Leaving {
				w.t.Errorf("the group knows %+v", all)
			}
		},
		"a call with a context that has ended": func(w *world, c *Client) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			frames := w.sends()
			for range 20 {
				if _, err := c.Acquire(ctx, "x", false); !errors.Is(err, context.Canceled) {
					w.t.Error(err)
				}
			}
			if synctest.Wait(); frames.Load() > 0 {
				w.t.Errorf("%d frames for calls that were over when they were made", frames.Load())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, one, two)
				defer w.close()
				w.elect(one)
				attached(w, w.clients[id])
				f(w, w.clients[id])
			})
		})
	}
}

func TestShellCloseEndsAllCallsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		w.elect(nodeidtest.ID(1))
		c := w.clients[nodeidtest.ID(100)]
		if err := c.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.elect(nodeidtest.ID(0))
		synctest.Wait()
		calls := map[string]func(context.Context) error{
			"CloseSession": c.CloseSession, "WaitAttached": c.WaitAttached, "Acquire": func(ctx context.Context) error {
				_, err := c.Acquire(ctx, "x", false)
				return err
			},
		}
		ended := make(chan string, len(calls))
		for name, call := range calls {
			go func() { ended <- fmt.Sprint(name, ": ", call(context.Background())) }()
		}
		time.Sleep(time.Second)
		began := time.Now()
		c.Close()
		select {
		case <-c.ended:
		default:
			t.Error("Close has returned before the goroutine")
		}
		for range calls {
			select {
			case got := <-ended:
				if !strings.HasSuffix(got, ErrClosed.Error()) {
					t.Error(got)
				}
			case <-time.After(time.Minute):
				t.Fatal("a call goes on after Close")
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
		if c.Receive(nodeidtest.ID(1), []byte{1}); len(c.inbox) > 0 {
			t.Error("a closed client collects inputs")
		}
		w.close()
	})
}

// TestShellAllThatIsDueIsSent checks that commands that do not fit into one frame are sent without
// another input.
func TestShellAllThatIsDueIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		c := w.clients[nodeidtest.ID(100)]
		if err := c.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		const calls, size = 1500, 250
		slow, frames := make(chan struct{}), new(atomic.Int64)
		w.refuse.Store(new(func(what string) bool {
			if what == "propose" {
				<-slow // no answer arrives
			} else if what == "send" {
				frames.Add(1)
			}
			return false
		}))
		granted := make(chan error, calls)
		stopped, goOn := make(chan struct{}), make(chan struct{})
		w.mu.Lock()
		w.onSend = sync.OnceFunc(func() { close(stopped); <-goOn })
		w.mu.Unlock()
		go c.Acquire(context.Background(), "the first", true)
		<-stopped
		for i := range calls {
			go func() {
				h, err := c.Acquire(context.Background(), fmt.Sprintf("%0*d", size, i), false)
				if err == nil {
					err = h.ReleaseSoon()
				}
				granted <- err
			}()
		}
		synctest.Wait()
		close(goOn)
		began := time.Now()
		synctest.Wait()
		if n := frames.Load(); n < 1+calls*size/frameBytes+1 || time.Since(began) > 0 {
			t.Errorf("%d frames for %d bytes", n, calls*size)
		}
		close(slow)
		for range calls {
			if err := <-granted; err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestShellTimeGoesOn checks that a client renews its lease for a long time, even if a timer fires
// early.
func TestShellTimeGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		defer w.close()
		leaping := w.leap()
		w.elect(nodeidtest.ID(1))
		c, h := w.clients[nodeidtest.ID(100)], w.lock(nodeidtest.ID(100), "x")
		for range 40 {
			time.Sleep(worldTTL / 2)
			if s := c.Status(); h.Err() != nil || s.Lease != Safe {
				t.Fatalf("a lease that is renewed is %v, and its lock: %v", s.Lease, h.Err())
			}
		}
		leaping.leap.Advance(-worldTTL / 30) // the timer fires early, as it may with a coarse clock
		for range 10 {
			time.Sleep(worldTTL / 2)
			if h.Err() != nil {
				t.Fatalf("a lease is not renewed any more after an early timer: %v", h.Err())
			}
		}
		frames := w.sends()
		time.Sleep(10 * worldTTL)
		if n := frames.Load(); n > 60 {
			t.Errorf("%d frames in %v of a client that only renews", n, 10*worldTTL)
		}
		goOn := w.holdUp()
		defer goOn()
		leaping.leap.Advance(worldTTL * 2 / 3)
		if s := c.Status(); s.Lease != Jeopardy {
			t.Errorf("a client whose goroutine is held up says that its lease is %v", s.Lease)
		}
		leaping.leap.Advance(worldTTL)
		if s := c.Status(); s.Lease != Lost {
			t.Errorf("behind its deadline a client whose goroutine is held up says that its lease is %v", s.Lease)
		}
	})
}

func TestOthersTakeNoRoomOfTheLeader(t *testing.T) {
	c := &Client{wake: make(chan struct{}, 1), core: NewCore(1, worldTTL), config: Config{Clock: new(clock.Manual)}}
	c.heeded = nodeidtest.ID(1)
	c.Receive(nodeidtest.ID(2), make([]byte, otherBytes/2))
	c.Receive(nodeidtest.ID(1), make([]byte, inboxBytes-inputBytes))
	c.Receive(nodeidtest.ID(2), make([]byte, otherBytes/4))
	if n := len(c.inbox); n != 3 || c.overflown {
		t.Errorf("%d of 3 frames are taken, the leader's stream counts as ended: %v", n, c.overflown)
	}
	c.Receive(nodeidtest.ID(1), make([]byte, inputBytes)) // these bytes exceed the limit, so the stream counts as ended
	c.Receive(nodeidtest.ID(2), make([]byte, inputBytes))
	if n := len(c.inbox); n != 5 || c.inbox[3].kind != inputDown || c.inbox[4].kind != inputReceive || !c.overflown {
		t.Errorf("%d of 5 inputs are taken, the leader's stream counts as ended: %v", n, c.overflown)
	}
}

// TestShellWaitersEnd checks that no waiter is left when its context ends or its condition can no
// longer become true.
func TestShellWaitersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		c, h := w.clients[nodeidtest.ID(100)], w.lock(nodeidtest.ID(100), "x")
		never := func(Status) bool { return false }
		for range 10 {
			if err := c.CloseSession(t.Context()); err != ErrStillHeld {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := c.wait(ctx, inputWait, never); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			cancel()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err, named := c.WaitReleased(ctx), `"x": `
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > time.Second {
			t.Errorf("after %v: %v", took, err)
		} else if !strings.HasPrefix(err.Error(), named) {
			t.Errorf("it does not name the key that is held: %v", err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.elect(nodeidtest.ID(0))
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.CloseSession(gone); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if synctest.Wait(); len(c.waiting)+len(c.closing) != 0 {
			t.Errorf("%d and %d calls that are over are still waited for", len(c.waiting), len(c.closing))
		}
		ended := make(chan error, 1)
		go func() { ended <- c.wait(context.Background(), inputWait, never) }()
		synctest.Wait()
		w.elect(nodeidtest.ID(1))
		if err := c.CloseSession(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err != ErrClosed {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("a call waits for a session that is closed")
		}
	})
}

func TestShellWatchIsToldOfJeopardy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, nodeidtest.ID(1))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		id := nodeidtest.ID(100)
		var mu sync.Mutex
		var leases []LeaseState
		c := New(Config{
			Clock: w.clock, TTL: worldTTL, Random: func(b []byte) { rand.Read(b) },
			Send: func(to nodeid.Endpoint, renewals, commands []byte) error {
				return w.send(id, to.ID, renewals, commands)
			},
			Watch: func(n *News) {
				mu.Lock()
				defer mu.Unlock()
				if len(leases) == 0 || leases[len(leases)-1] != n.After.Lease {
					leases = append(leases, n.After.Lease)
				}
			},
		})
		w.mu.Lock()
		w.clients[id] = c
		w.mu.Unlock()
		c.Rebind([]byte{1}, []nodeid.Endpoint{{ID: nodeidtest.ID(1)}})
		time.Sleep(10 * worldTTL)
		w.isolate(id, true)
		c.Down(nodeidtest.ID(1))
		time.Sleep(2 * worldTTL)
		mu.Lock()
		defer mu.Unlock()
		if want := []LeaseState{Lost, Safe, Jeopardy, Lost}; !slices.Equal(leases, want) {
			t.Errorf("told of %v, want %v", leases, want)
		}
	})
}
