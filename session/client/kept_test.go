package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/stay"
)

// kept100 and kept101 are the clients of the tests of stays.
var (
	kept100 = nodeidtest.ID(100)
	kept101 = nodeidtest.ID(101)
)

// keeping runs a test with two attached clients.
func keeping(t *testing.T, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, nodeidtest.ID(1))
		defer w.close()
		w.t = t
		w.elect(nodeidtest.ID(1))
		for _, c := range w.clients {
			if err := c.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Millisecond) // the wall clock must advance, so that tokens can be reserved
		test(w)
	})
}

func (w *world) stick(ctx context.Context, c nodeid.ID, p Pass) (*Hold, error) {
	h := &Hold{}
	return h, w.clients[c].AcquireKept(ctx, h, &p)
}

func passOf(key string) Pass { return Pass{Caller: stay.Caller{Key: key}} }

func tryOf(key string) Pass { return Pass{Caller: stay.Caller{Key: key, Try: true}} }

func (w *world) sticky(c nodeid.ID, key string) *Hold {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*worldTTL)
	defer cancel()
	h, err := w.stick(ctx, c, passOf(key))
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

func (w *world) unlock(h *Hold) {
	w.t.Helper()
	if err := h.Release(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// kept locks and unlocks a key, so that the client keeps it.
func (w *world) kept(c nodeid.ID, key string) {
	w.t.Helper()
	h := w.sticky(c, key)
	w.unlock(h)
	synctest.Wait()
	if n := w.clients[c].stays().Counts(); n.Granted == n.Inside || h.pass == nil {
		w.t.Fatal("the lock is not kept")
	}
}

// queue starts a sticky call, and returns after the call has begun to wait.
func (w *world) queue(c nodeid.ID, key, name string, order *servedOrder) {
	order.all.Add(1)
	go func() {
		defer order.all.Done()
		ctx, cancel := context.WithTimeout(context.Background(), 10*worldTTL)
		defer cancel()
		h, err := w.stick(ctx, c, passOf(key))
		order.add(name, err)
		if err == nil {
			w.unlock(h)
		}
	}()
	synctest.Wait()
}

type servedOrder struct {
	all   sync.WaitGroup
	mu    sync.Mutex
	names []string
}

func (o *servedOrder) add(name string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		name += ": " + err.Error()
	}
	o.names = append(o.names, name)
}

func (o *servedOrder) want(t *testing.T, names ...string) {
	t.Helper()
	o.all.Wait()
	if !slices.Equal(o.names, names) {
		t.Errorf("served %q, want %q", o.names, names)
	}
}

func TestKeptSecondLockSendsNoFrame(t *testing.T) {
	keeping(t, func(w *world) {
		w.kept(kept100, "x")
		frames, c, last := w.sends(), w.clients[kept100], lockfsm.Token(0)
		for range 100 {
			h := w.sticky(kept100, "x")
			if s := c.Status(); h.Err() != nil || h.Token() <= last || s.Held != 1 || s.Requests != 1 {
				w.t.Fatalf("token %d after %d, %v, %+v", h.Token(), last, h.Err(), s)
			}
			last = h.Token()
			w.unlock(h)
			w.unlock(h) // again
			if s := c.Status(); h.Err() != ErrReleased || s.Held != 0 || s.Requests != 0 || s.Waiting != 0 {
				w.t.Fatalf("%v, %+v", h.Err(), s)
			}
		}
		if synctest.Wait(); frames.Load() > 0 {
			w.t.Errorf("%d frames", frames.Load())
		}
		if n := w.counts().Entries; n != 1 {
			w.t.Errorf("%d entries", n)
		}
		time.Sleep(2 * time.Second) // the stay is not used
		w.empty()
	})
}

// stays returns the first part of the stays.
func (c *Client) stays() *stay.Set {
	c.kept.make(&c.config)
	return c.kept.all()[0].stays
}

// ofOneStay returns a client without a goroutine, which keeps the key x.
func ofOneStay() *Client {
	c := &Client{config: Config{Clock: clock.Monotonic(), Stays: 10, StayIdle: time.Hour}, wake: make(chan struct{}, 1)}
	for _, t := range []*atomic.Int64{&c.deadline, &c.safe, &c.ttl} {
		t.Store(1 << 62)
	}
	l, s := &stay.Caller{Key: "x", Caller: &Hold{client: c, slot: make(chan error, 1)}}, c.stays()
	s.Lock(c.window(), l)
	s.Carry(posting{c})
	s.Granted(c.window(), c.inbox[0].stay.Request, 1, 1<<62)
	s.Unlock(c.window(), l)
	s.Carry(posting{c})
	return c
}

func (c *Client) keepsNothing(t *testing.T) {
	t.Helper()
	s := c.stays()
	if s.Counts() != (stay.Counts{}) || s.Next(c.now) != 0 || len(c.core.asking) > 0 ||
		len(c.core.answers) > 0 {
		t.Errorf("left: %+v, %d asking, %d answers", s, len(c.core.asking), len(c.core.answers))
	}
}

func keptPass(tb testing.TB, c *Client) {
	h := &struct {
		Hold
		Pass
	}{Pass: passOf("x")}
	err := c.AcquireKept(context.Background(), &h.Hold, &h.Pass)
	if err == nil {
		err = h.ReleaseSoon()
	}
	if err != nil {
		tb.Fatal(err)
	}
}

func TestKeptAllocations(t *testing.T) {
	c := ofOneStay()
	for range 10 {
		keptPass(t, c)
	}
	if n := testing.AllocsPerRun(1000, func() { keptPass(t, c) }); n > 1 { // the Hold
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkKeptLock(b *testing.B) {
	c := ofOneStay()
	b.ReportAllocs()
	for b.Loop() {
		keptPass(b, c)
	}
}

func TestKeptHandOver(t *testing.T) {
	keeping(t, func(w *world) {
		h, order := w.sticky(kept100, "x"), &servedOrder{}
		for _, name := range []string{"a", "b", "c", "d"} {
			w.queue(kept100, "x", name, order)
		}
		if s := w.clients[kept100].Status(); s.Held != 1 || s.Waiting != 4 || s.Requests != 5 {
			w.t.Errorf("status %+v", s)
		}
		frames := w.sends()
		w.unlock(h)
		order.want(w.t, "a", "b", "c", "d")
		if frames.Load() > 0 {
			w.t.Errorf("%d frames", frames.Load())
		}
	})
}

func TestKeptRecall(t *testing.T) {
	keeping(t, func(w *world) {
		w.kept(kept100, "x")
		began := time.Now()
		w.unlock(w.sticky(kept101, "x")) // the other client gives it back
		w.unlock(w.lock(kept100, "x"))
		if took := time.Since(began); took > 0 {
			w.t.Errorf("a free stay was given back after %v", took)
		}
		h, order := w.sticky(kept100, "y"), &servedOrder{}
		w.queue(kept100, "y", "before", order)
		w.queue(kept101, "y", "the other", order)
		w.queue(kept100, "y", "after", order)
		w.unlock(h)
		order.want(w.t, "before", "the other", "after")
	})
}

// TestKeptIsGivenBackToTheOwnSession checks that an ordinary request of the same client recalls a
// stay, too.
func TestKeptIsGivenBackToTheOwnSession(t *testing.T) {
	keeping(t, func(w *world) {
		w.kept(kept100, "x")
		frames := w.sends()
		w.unlock(w.lock(kept100, "x"))
		if frames.Load() != 2 { // Release and Acquire, and Release
			w.t.Errorf("%d frames", frames.Load())
		}
		h := w.sticky(kept100, "x")
		go func() {
			time.Sleep(time.Second)
			w.unlock(h)
		}()
		began := time.Now()
		w.unlock(w.lock(kept100, "x"))
		if took := time.Since(began); took != time.Second {
			w.t.Errorf("granted after %v", took)
		}
	})
}

func TestKeptWanted(t *testing.T) {
	for name, other := range map[string]nodeid.ID{"the same client": kept100, "another client": kept101} {
		t.Run(name, func(t *testing.T) {
			keeping(t, func(w *world) {
				h, err := w.stick(w.t.Context(), kept100, Pass{Caller: stay.Caller{Key: "x", Notice: true}})
				if err != nil {
					w.t.Fatal(err)
				}
				order := &servedOrder{}
				w.queue(other, "x", "other", order)
				<-h.Wanted()
				w.unlock(h)
				order.want(w.t, "other")
			})
		})
	}
}

func TestKeptTry(t *testing.T) {
	keeping(t, func(w *world) {
		w.kept(kept100, "x")
		free, err := w.stick(w.t.Context(), kept101, tryOf("x")) // it is free, so it is granted
		if err != nil {
			w.t.Fatal(err)
		}
		w.unlock(free)
		h := w.sticky(kept100, "y")
		for _, c := range []nodeid.ID{kept100, kept101, kept101} {
			_, err := w.stick(w.t.Context(), c, tryOf("y"))
			var held *HeldError
			if !errors.As(err, &held) || held.Token != h.Token() || !errors.Is(err, ErrHeld) ||
				held.Session != w.clients[kept100].Status().Session || len(held.Record) != 1 {
				w.t.Errorf("%v: %+v", err, held)
			}
		}
		w.unlock(h)
		if synctest.Wait(); w.counts().Entries != 0 { // it was recalled
			w.t.Errorf("%+v", w.counts())
		}
	})
}

func TestKeptTryWithoutAnAnswer(t *testing.T) {
	keeping(t, func(w *world) {
		w.kept(kept100, "x")
		w.isolate(kept100, true)
		began := time.Now()
		if _, err := w.clients[kept101].Acquire(w.t.Context(), "x", true); err != ErrKept {
			w.t.Error(err)
		}
		if took := time.Since(began); took != tryWithout {
			w.t.Errorf("it took %v", took)
		}
		if synctest.Wait(); len(w.clients[kept101].core.asking) > 0 || w.counts().Waiters > 0 {
			w.t.Errorf("it still waits: %+v", w.counts())
		}
		time.Sleep(worldTTL)
		h, err := w.clients[kept101].Acquire(w.t.Context(), "x", true)
		if err != nil {
			w.t.Fatal(err)
		}
		w.unlock(h)
	})
}

func TestKeptIsLostAtTheDeadline(t *testing.T) {
	keeping(t, func(w *world) {
		w.kept(kept100, "free")
		h, order := w.sticky(kept100, "x"), &servedOrder{}
		w.queue(kept100, "x", "local", order)
		w.isolate(kept100, true)
		w.keepers[nodeidtest.ID(1)].Down(kept100)
		w.clients[kept100].Down(nodeidtest.ID(1))
		w.queue(kept101, "x", "remote", order)
		time.Sleep(w.clients[kept100].Status().Deadline.Sub(w.clock.Now()) - time.Millisecond)
		if h.Err() != nil {
			w.t.Errorf("in jeopardy: %v", h.Err())
		}
		<-h.Done()
		if err := h.Err(); err != ErrLost {
			w.t.Error(err)
		}
		if err := h.Release(w.t.Context()); err != ErrLost {
			w.t.Errorf("release: %v", err)
		}
		time.Sleep(worldTTL)
		w.isolate(kept100, false)
		order.want(w.t, "remote", "local")
		time.Sleep(2 * time.Second)
		w.empty()
	})
}

// TestKeptLossIsToldWithoutFreeStays ends the lease of a client that keeps one lock, free or in
// use. The news must count only the lock in use as held, because the log says how many locks are
// lost.
func TestKeptLossIsToldWithoutFreeStays(t *testing.T) {
	for _, inUse := range []int{0, 1} {
		keeping(t, func(w *world) {
			c, held := w.clients[kept100], -1
			c.stays().Idle = time.Hour
			w.kept(kept100, "x")
			if inUse == 1 {
				defer w.sticky(kept100, "x").ReleaseSoon()
			}
			synctest.Wait()
			c.config.Watch = func(n *News) {
				if n.Before.Lease != Lost && n.After.Lease == Lost {
					held = n.Before.Held
				}
			}
			w.isolate(kept100, true)
			w.keepers[nodeidtest.ID(1)].Down(kept100)
			c.Down(nodeidtest.ID(1))
			time.Sleep(2 * worldTTL)
			synctest.Wait()
			if held != inUse {
				w.t.Errorf("%d locks are lost, want %d", held, inUse)
			}
			w.isolate(kept100, false)
		})
	}
}

// TestKeptNothingInJeopardy checks that callers wait until the lease is renewed.
func TestKeptNothingInJeopardy(t *testing.T) {
	keeping(t, func(w *world) {
		w.clients[kept100].stays().Idle = time.Hour
		w.kept(kept100, "x")
		w.elect(nodeidtest.ID(0))
		time.Sleep(worldTTL / 3 * 2)
		order := &servedOrder{}
		w.queue(kept100, "x", "local", order)
		if s := w.clients[kept100].Status(); s.Lease != Jeopardy || s.Waiting != 1 || len(order.names) > 0 {
			w.t.Fatalf("served %q, %+v", order.names, s)
		}
		w.elect(nodeidtest.ID(1))
		began := time.Now()
		order.want(w.t, "local")
		if took := time.Since(began); took > time.Second {
			w.t.Errorf("it took %v", took)
		}
	})
}

func TestKeptUnlockAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		defer w.close()
		leaping := w.leap()
		w.elect(nodeidtest.ID(1))
		if err := w.clients[kept100].WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		w.kept(kept100, "x")
		h := w.sticky(kept100, "x")
		goOn := w.holdUp()
		defer goOn()
		deadline := w.clients[kept100].Status().Deadline
		leaping.leap.Advance(worldTTL)
		if err := h.ReleaseSoon(); err != ErrLost || h.Until() != deadline {
			t.Errorf("%v, lost at %v, the deadline was %v", err, h.Until(), deadline)
		}
		if _, err := w.stick(expired(t), kept100, passOf("x")); err == nil {
			t.Error("a pass after the deadline")
		}
	})
}

// expired returns a context that ends as soon as all goroutines wait.
func expired(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	t.Cleanup(cancel)
	return ctx
}

// TestAnEndedContextTakesNoLock checks that a call whose context has ended gets an error, also for
// a lock that is free or kept here.
func TestAnEndedContextTakesNoLock(t *testing.T) {
	keeping(t, func(w *world) {
		ended, cancel := context.WithCancel(w.t.Context())
		cancel()
		w.kept(kept100, "kept")
		for _, key := range []string{"kept", "free"} {
			_, sticky := w.stick(ended, kept100, passOf(key))
			p := passOf(key)
			plain := w.clients[kept100].AcquireInto(ended, &Hold{}, p.Request())
			for _, err := range []error{sticky, plain} {
				var wait *WaitError
				if !errors.As(err, &wait) || wait.Key != key || !errors.Is(err, context.Canceled) {
					w.t.Errorf("of the lock %q that is %s: %v", key, key, err)
				}
			}
		}
		if s := w.clients[kept100].Status(); s.Held != 0 || s.Waiting != 0 || s.Requests != 0 {
			w.t.Errorf("afterwards %+v", s)
		}
	})
}

func TestKeptContextEnds(t *testing.T) {
	keeping(t, func(w *world) {
		h := w.sticky(kept100, "x")
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := w.stick(ctx, kept100, passOf("x"))
		var wait *WaitError
		if !errors.As(err, &wait) || wait.Key != "x" || time.Since(began) != time.Second {
			w.t.Errorf("%v after %v", err, time.Since(began))
		}
		if s := w.clients[kept100].Status(); s.Waiting != 0 {
			w.t.Errorf("%+v", s)
		}
		granted := 0
		for range 200 { // the context ends at the moment of the grant
			ctx, cancel := context.WithCancel(w.t.Context())
			result := make(chan error)
			var next *Hold
			go func() {
				var err error
				next, err = w.stick(ctx, kept100, passOf("x"))
				result <- err
			}()
			synctest.Wait()
			go cancel()
			w.unlock(h)
			if err := <-result; err == nil {
				granted++
				w.unlock(next)
			} else if !errors.Is(err, context.Canceled) {
				w.t.Fatal(err)
			}
			h = w.sticky(kept100, "x") // it is free in any case
		}
		w.t.Logf("%d of 200 calls were granted", granted)
		w.unlock(h)
		// The first request for a key is cancelled while the group grants it.
		for i := range 50 {
			ctx, cancel := context.WithCancel(w.t.Context())
			go cancel()
			if h, err := w.stick(ctx, kept100, passOf(fmt.Sprint(i))); err == nil {
				w.unlock(h)
			}
			w.unlock(w.sticky(kept100, fmt.Sprint(i)))
		}
		time.Sleep(2 * time.Second)
		w.empty()
	})
}

func TestKeptClose(t *testing.T) {
	keeping(t, func(w *world) {
		for i := range 50 {
			w.kept(kept100, fmt.Sprint(i))
		}
		h, order := w.sticky(kept100, "x"), &servedOrder{}
		w.queue(kept100, "x", "local", order)
		frames := w.sends()
		w.clients[kept100].Close()
		if n := frames.Load(); n != 1 {
			w.t.Errorf("Close has sent %d frames", n)
		}
		order.want(w.t, "local: "+ErrClosed.Error())
		if err := h.Release(w.t.Context()); err != ErrLost {
			w.t.Errorf("the hold: %v", err)
		}
		if synctest.Wait(); w.counts().Entries != 1 { // x stays taken, because code under it may run
			w.t.Errorf("%+v", w.counts())
		}
		if _, err := w.stick(w.t.Context(), kept100, passOf("z")); err != ErrClosed {
			w.t.Errorf("after Close: %v", err)
		}
		w.clients[kept100].keepsNothing(w.t)
	})
}

// TestKeptCloseInJeopardy closes a client that has a stay, which no caller is inside of and for
// which a caller waits.
func TestKeptCloseInJeopardy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		defer w.close()
		leaping := w.leap()
		w.elect(nodeidtest.ID(1))
		if err := w.clients[kept100].WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		w.kept(kept100, "x")
		leaping.leap.Advance(worldTTL / 4 * 3)
		order := &servedOrder{}
		w.queue(kept100, "x", "local", order)
		if s := w.clients[kept100].Status(); s.Lease != Jeopardy || s.Waiting != 1 {
			t.Fatalf("%+v", s)
		}
		w.clients[kept100].Close()
		order.want(t, "local: "+ErrClosed.Error())
		if synctest.Wait(); w.counts().Entries != 0 {
			t.Errorf("%+v", w.counts())
		}
	})
}

// TestKeptCloseSessionInJeopardy closes a session whose only stay has a caller that waits until the
// lease is renewed. No caller holds a lock, so the session can be closed.
func TestKeptCloseSessionInJeopardy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		defer w.close()
		leaping := w.leap()
		w.elect(nodeidtest.ID(1))
		if err := w.clients[kept100].WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		w.kept(kept100, "x")
		leaping.leap.Advance(worldTTL / 4 * 3)
		order := &servedOrder{}
		w.queue(kept100, "x", "local", order)
		if s := w.clients[kept100].Status(); s.Lease != Jeopardy || s.Waiting != 1 || s.Held != 0 {
			t.Fatalf("%+v", s)
		}
		if err := w.clients[kept100].CloseSession(t.Context()); err != nil {
			t.Error(err)
		}
		order.want(t, "local: "+ErrClosed.Error())
	})
}

// TestKeptErrEndsAPass pauses the process until the deadline of a pass has passed, and calls Err. A
// renewal that the client received before the pause is published afterwards. So the stay goes on,
// and others must get the lock although the caller never unlocks.
func TestKeptErrEndsAPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, nodeidtest.ID(1))
		defer w.close()
		leaping := w.leap()
		w.elect(nodeidtest.ID(1))
		if err := w.clients[kept100].WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		w.kept(kept100, "x")
		h := w.sticky(kept100, "x")
		synctest.Wait()
		goOn := w.holdUp()
		defer goOn()
		leaping.leap.Advance(worldTTL)
		if err := h.Err(); !errors.Is(err, ErrLost) {
			t.Fatalf("first call after the pause: %v", err)
		}
		leaping.leap.Advance(-worldTTL)
		goOn()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), worldTTL)
		defer cancel()
		next, err := w.clients[kept101].Acquire(ctx, "x", false)
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(h.Err(), ErrLost) || next.Token() <= h.Token() {
			t.Errorf("%v, token %d after %d", h.Err(), next.Token(), h.Token())
		}
		w.unlock(next)
	})
}

func TestKeptLeave(t *testing.T) {
	keeping(t, func(w *world) {
		w.kept(kept100, "free")
		h, order, c := w.sticky(kept100, "x"), &servedOrder{}, w.clients[kept100]
		w.queue(kept100, "x", "local", order)
		c.Leaving()
		order.want(w.t, "local: "+ErrLeaving.Error())
		synctest.Wait()
		if n := w.counts().Entries; n != 1 {
			w.t.Errorf("%d entries", n)
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		if err := c.WaitReleased(ctx); err == nil || err.Error() != `"x": `+context.DeadlineExceeded.Error() {
			w.t.Errorf("a pass is held: %v", err)
		}
		go func() {
			time.Sleep(time.Second)
			w.unlock(h)
		}()
		if err := c.WaitReleased(w.t.Context()); err != nil {
			w.t.Error(err)
		}
		if _, err := w.stick(w.t.Context(), kept100, passOf("x")); err != ErrLeaving {
			w.t.Error(err)
		}
		if err := c.CloseSession(w.t.Context()); err != nil {
			w.t.Error(err)
		}
		if n := w.counts(); n.Entries != 0 || n.Sessions != 1 {
			w.t.Errorf("%+v", n)
		}
	})
}

func TestKeptRebind(t *testing.T) {
	keeping(t, func(w *world) {
		w.kept(kept100, "free")
		h, order := w.sticky(kept100, "x"), &servedOrder{}
		w.queue(kept100, "x", "local", order)
		w.clients[kept100].Rebind([]byte{1}, []nodeid.Endpoint{{ID: nodeidtest.ID(1)}})
		if err := h.Err(); err != ErrLost {
			w.t.Error(err)
		}
		order.want(w.t, "local") // when the old session has expired
		w.unlock(w.sticky(kept100, "free"))
		time.Sleep(2 * time.Second)
		w.empty()
	})
}

func TestKeptNewLeader(t *testing.T) {
	keeping(t, func(w *world) {
		w.kept(kept100, "x")
		h := w.sticky(kept100, "y")
		w.elect(nodeidtest.ID(1))
		synctest.Wait()
		w.unlock(w.sticky(kept100, "x"))
		if h.Err() != nil {
			w.t.Error(h.Err())
		}
		order := &servedOrder{}
		w.queue(kept101, "y", "remote", order)
		w.elect(nodeidtest.ID(1)) // the new leader repeats the recall
		w.unlock(h)
		order.want(w.t, "remote")
	})
}

// TestRequestUnderAPass checks that a request under a pass names the stay as its owner, and that no
// other caller gets a pass of that stay.
func TestRequestUnderAPass(t *testing.T) {
	keeping(t, func(w *world) {
		w.kept(kept100, "y")
		h := w.sticky(kept100, "x")
		under, err := w.ask(kept100, Request{Key: "y", Terms: &Terms{Under: h.Request()}})
		if err != nil {
			w.t.Fatal(err)
		}
		if under.pass != nil || under.req.Terms.owner == 0 {
			w.t.Error("a request under a lock is a pass, or has no owner")
		}
		w.unlock(under)
		w.unlock(h)
		w.empty()
		if h.Request().stay() != nil {
			w.t.Error("a pass that has ended is an owner")
		}
	})
}

// TestStaysAreMadeByTheFirstStickyCall checks that a session without sticky calls costs nothing for
// them, and that stays that are made after Leave keep nothing.
func TestStaysAreMadeByTheFirstStickyCall(t *testing.T) {
	t.Parallel()
	c := &Client{config: Config{Clock: clock.Monotonic(), Stays: 10_000, StayIdle: time.Hour, Random: func([]byte) {}},
		core: NewCore(1, worldTTL), wake: make(chan struct{}, 1)}
	c.turn()
	if c.kept.all() != nil {
		t.Error("there are stays before the first sticky call")
	}
	c.dispatch(1, &input{kind: inputLeaving})
	h := &Hold{client: c, pass: &Pass{stay.Caller{Key: "x"}}}
	h.pass.Caller.Caller = h
	if answer := c.lockKept(h); answer != stay.Ordinary || len(c.kept.all()) != keptParts {
		t.Errorf("after Leave a sticky call is answered %v, and there are %d parts", answer, len(c.kept.all()))
	}
}
