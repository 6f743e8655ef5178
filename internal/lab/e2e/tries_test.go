package e2e

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestATryIsHeldOnlyByAHolder lets a request with Try for two keys wait for the instance that keeps
// one of them, and does not answer. Another request with Try for the free key must not be Held by a
// request that may fail: otherwise two callers that skip their work on ErrHeld both skip it.
func TestATryIsHeldOnlyByAHolder(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, func(c *mortise.Config) { c.SessionTTL = 10 * time.Second })
		keeps := f.follower()
		one, other := (keeps+1)%3, (keeps+2)%3
		unlock(t, f.acquire(keeps, stickily{key: "kept"}))
		f.isolate(keeps)
		both := make(chan error, 1)
		go func() {
			l, err := f.nodes[one].Acquire(t.Context(), mortise.Request{Key: "free",
				Also: []mortise.Part{{Key: "kept"}}, Try: true})
			if err == nil {
				unlock(t, l)
			}
			both <- err
		}()
		time.Sleep(time.Second)
		l, err := f.nodes[other].TryLock(t.Context(), "free")
		if err != nil {
			t.Errorf("the Try for the free key: %v", err)
		} else {
			unlock(t, l)
		}
		if err := <-both; !errors.Is(err, mortise.ErrNotReady) {
			t.Errorf("the Try for both keys: %v", err)
		}
		f.rejoin(keeps)
		f.ready()

		// Behind a request without Try for several keys there is no holder either.
		owner := f.lock(0, "owned")
		waiter := f.later(1, mortise.Request{Key: "owned", Also: []mortise.Part{{Key: "placed"}}})
		_, err = f.nodes[0].TryLock(t.Context(), "placed")
		if !errors.Is(err, mortise.ErrQueueFull) || errors.Is(err, mortise.ErrHeld) ||
			!strings.Contains(err.Error(), `"placed" is not free`) {
			t.Errorf("a Try behind a request that waits: %v", err)
		}
		_, err = f.nodes[0].TryLock(t.Context(), "owned")
		wantIs(t, err, mortise.ErrHeld)
		unlock(t, owner)
		l = comes(t, "the request for both", waiter)
		_, err = f.nodes[0].TryLock(t.Context(), "placed")
		wantIs(t, err, mortise.ErrHeld)
		unlock(t, l)
		f.nothingLeft()
	})
}

// TestMaxWaitingNamesTheQueue checks MaxWaiting of nodes of a tree: only the queues in which the
// request must wait count, and the error names the queue that is full.
func TestMaxWaitingNamesTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		a := f.acquire(0, mortise.Request{Key: "t/a", Tree: true})
		waiter := f.later(0, mortise.Request{Key: "t/a", Tree: true})
		for _, r := range []mortise.Request{
			{Key: "t/b", Tree: true, MaxWaiting: 1}, {Key: "t/b", Tree: true, Mode: mortise.Shared, MaxWaiting: 1},
			{Key: "t/a/x", Tree: true, MaxWaiting: 2},
		} {
			if r.MaxWaiting == 2 { // it waits for t/a, and only one request waits there
				l := f.later(0, r)
				waits(t, "a node below", l)
				go func() { unlock(t, <-l) }()
				continue
			}
			unlock(t, f.acquire(0, r))
		}
		for want, r := range map[string]mortise.Request{
			`wait for "t/a"`: {Key: "t/a/y", Tree: true, MaxWaiting: 1},
			`wait for "t"`:   {Key: "t", Tree: true, MaxWaiting: 1},
		} {
			_, err := f.nodes[0].Acquire(t.Context(), r)
			if !errors.Is(err, mortise.ErrQueueFull) || r.Key != "t" && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", r.Key, err)
			}
		}
		unlock(t, a)
		unlock(t, comes(t, "the waiter", waiter))
		synctest.Wait()
		f.nothingLeft()
	})
}
