package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/keeper"
)

// TestShellCancelStorm checks that cancelled calls leave no state.
func TestShellCancelStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, nodeidtest.ID(1), nodeidtest.ID(2), nodeidtest.ID(3))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		var group sync.WaitGroup
		for i := range 200 {
			group.Go(func() {
				for round := range 10 {
					var b [2]byte
					rand.Read(b[:])
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(b[0])*time.Millisecond)
					h, err := w.clients[nodeidtest.ID(uint64(100+i%3))].Acquire(ctx, fmt.Sprint("k", i%5), b[1] < 50)
					if err == nil {
						time.Sleep(time.Duration(b[1]) * time.Microsecond)
						if round%2 == 0 {
							err = h.Release(ctx)
						} else {
							err = h.Release(context.Background())
						}
					}
					if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrHeld) {
						t.Error(err)
					}
					cancel()
				}
			})
		}
		for i := range 10 {
			time.Sleep(100 * time.Millisecond)
			w.elect(nodeidtest.ID(uint64(i % 4))) // zero means no leader
		}
		w.elect(nodeidtest.ID(2))
		group.Wait()
		time.Sleep(time.Second)
		w.empty()
	})
}

func TestShellCloseInEveryState(t *testing.T) {
	for name, prepare := range map[string]func(*world){
		"unbound":   func(w *world) { w.newClient(nodeidtest.ID(100), w.clock) },
		"no leader": func(w *world) { time.Sleep(time.Second) },
		"cut off":   func(w *world) { w.isolate(nodeidtest.ID(1), true); time.Sleep(time.Second) },
		"attached":  func(w *world) { w.elect(nodeidtest.ID(1)); time.Sleep(time.Second) },
		"orphaned": func(w *world) {
			w.elect(nodeidtest.ID(1))
			time.Sleep(time.Second)
			w.elect(nodeidtest.ID(0))
			time.Sleep(time.Second)
		},
		"closed session": func(w *world) {
			w.elect(nodeidtest.ID(1))
			if err := w.clients[nodeidtest.ID(100)].CloseSession(context.Background()); err != nil {
				w.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, nodeidtest.ID(1))
				prepare(w)
				c := w.clients[nodeidtest.ID(100)]
				results := make(chan error, 4)
				go func() { _, err := c.Acquire(context.Background(), "x", false); results <- err }()
				go func() { _, err := c.Acquire(context.Background(), "x", false); results <- err }()
				go func() { results <- c.WaitReady(context.Background()) }()
				go func() { _, err := c.Acquire(context.Background(), "y", true); results <- err }()
				synctest.Wait()
				w.close()
				w.close()
				for range 4 {
					if err := <-results; err != nil && !errors.Is(err, ErrClosed) && err != ErrNoLeader {
						t.Error(err)
					}
				}
				for _, f := range []func() error{
					func() error { _, err := c.Acquire(context.Background(), "x", false); return err },
					func() error { return c.WaitAttached(context.Background()) },
					func() error { return c.CloseSession(context.Background()) },
				} {
					if err := f(); err != ErrClosed {
						t.Errorf("after Close: %v", err)
					}
				}
				c.Receive(nodeidtest.ID(1), []byte{1})
				c.Down(nodeidtest.ID(1))
				c.Leaving()
				w.keepers[nodeidtest.ID(1)].ReceiveFrom(keeper.Sender{ID: nodeidtest.ID(1)}, nil, []byte{1})
				w.keepers[nodeidtest.ID(1)].Applied(&lockfsm.Result{Kind: lockfsm.Born})
			})
		})
	}
}

// TestShellCloseKeepsTheSession checks that Close does not release held locks in the group, because
// the code under them may still run.
func TestShellCloseKeepsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		w.elect(nodeidtest.ID(1))
		h, released := w.lock(nodeidtest.ID(100), "x"), w.lock(nodeidtest.ID(100), "y")
		w.elect(nodeidtest.ID(0))
		result := make(chan error)
		go func() { result <- released.Release(context.Background()) }()
		synctest.Wait()
		w.clients[nodeidtest.ID(100)].Close()
		if err := <-result; err != ErrClosed {
			t.Errorf("a release without confirmation: %v", err)
		}
		if !errors.Is(h.Err(), ErrLost) || !errors.Is(h.Release(t.Context()), ErrLost) {
			t.Errorf("err %v", h.Err())
		}
		if c := w.counts(); c.Sessions != 1 || c.Entries != 2 {
			t.Errorf("%+v", c)
		}
		w.close()
	})
}

func TestShellCloseSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, nodeidtest.ID(1))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		h := w.lock(nodeidtest.ID(100), "x")
		if err := w.clients[nodeidtest.ID(100)].CloseSession(t.Context()); err != ErrStillHeld {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			h.Release(context.Background())
		}()
		if err := w.clients[nodeidtest.ID(100)].WaitReleased(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.clients[nodeidtest.ID(100)].Leaving()
		w.elect(nodeidtest.ID(0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.clients[nodeidtest.ID(100)].CloseSession(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		w.elect(nodeidtest.ID(1))
		if err := w.clients[nodeidtest.ID(100)].CloseSession(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.clients[nodeidtest.ID(100)].Acquire(t.Context(), "x", false); err != ErrClosed {
			t.Error(err)
		}
		if c := w.counts(); c.Sessions != 1 {
			t.Errorf("%+v", c)
		}
	})
}

// TestEachCallWhileTheClientCloses makes each call after Close has begun, and before the client's
// goroutine has ended the holds. A hold is still valid then, so each call must notice the end
// itself.
func TestEachCallWhileTheClientCloses(t *testing.T) {
	ctx := t.Context()
	for name, call := range map[string]func(c *Client, h, pass *Hold) error{
		"Acquire":        func(c *Client, _, _ *Hold) error { _, err := c.Acquire(ctx, "y", false); return err },
		"Acquire, a try": func(c *Client, _, _ *Hold) error { _, err := c.Acquire(ctx, "y", true); return err },
		"AcquireKept": func(c *Client, _, _ *Hold) error {
			p := passOf("y")
			return c.AcquireKept(ctx, &Hold{}, &p)
		},
		"WaitReady":    func(c *Client, _, _ *Hold) error { return c.WaitReady(ctx) },
		"WaitReleased": func(c *Client, _, _ *Hold) error { return c.WaitReleased(ctx) },
		"CloseSession": func(c *Client, _, _ *Hold) error { return c.CloseSession(ctx) },
		"Release":      func(_ *Client, h, _ *Hold) error { return h.Release(ctx) },
		"Detach":       func(_ *Client, h, _ *Hold) error { return h.Detach(ctx) },
		"Downgrade":    func(_ *Client, h, _ *Hold) error { return h.Downgrade(ctx, toReader()) },
		"Release of a pass": func(_ *Client, _, pass *Hold) error {
			if err := pass.Release(ctx); err != nil {
				return err
			}
			return ErrClosed // the pass was held until now; the lock itself ends with the session
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, nodeidtest.ID(1))
				defer w.close()
				w.elect(nodeidtest.ID(1))
				c := w.clients[nodeidtest.ID(100)]
				if err := c.WaitReady(context.Background()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Millisecond)
				h, pass := w.lock(nodeidtest.ID(100), "x"), w.sticky(nodeidtest.ID(100), "s")
				goOn := w.holdUp()
				defer goOn()
				closed := make(chan struct{})
				go func() { c.Close(); close(closed) }()
				synctest.Wait()
				if h.Err() != nil || pass.Err() != nil {
					t.Fatalf("before the last turn: %v, %v", h.Err(), pass.Err())
				}
				result := make(chan error, 1)
				go func() { result <- call(c, h, pass) }()
				synctest.Wait()
				goOn()
				<-closed
				if err := <-result; !errors.Is(err, ErrClosed) {
					t.Errorf("%v", err)
				}
				if h.Err() == nil || pass.Err() == nil {
					t.Error("a hold of a closed client is valid")
				}
			})
		})
	}
}

// TestTooManySharersOfAKeptLock makes more sticky calls than a client without a leader queues. The
// others are refused without delay, and the places are given back.
func TestTooManySharersOfAKeptLock(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		defer w.close()
		c := w.clients[nodeidtest.ID(100)]
		key := fmt.Sprintf("%0*d", int(lockfsm.DefaultLimits().KeyBytes)-8, 0)
		for range 3 {
			ctx, cancel := context.WithCancel(context.Background())
			var refused, others atomic.Int64
			var calls sync.WaitGroup
			for i := range 17_000 { // 8 MiB are 16,384 keys of 512 bytes
				calls.Go(func() {
					p := passOf(fmt.Sprintf("%s%08d", key, i))
					if err := c.AcquireKept(ctx, &Hold{}, &p); errors.Is(err, ErrOverloaded) {
						refused.Add(1)
					} else if errors.Is(err, context.Canceled) {
						others.Add(1)
					} else {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			if n := refused.Load(); n < 500 || n > 700 {
				t.Errorf("%d calls were refused", n)
			}
			cancel()
			calls.Wait()
			if n := refused.Load() + others.Load(); n != 17_000 {
				t.Errorf("%d calls ended", n)
			}
			synctest.Wait()
		}
	})
}
