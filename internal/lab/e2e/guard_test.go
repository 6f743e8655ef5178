package e2e

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestGuardedPutsRise lets all instances take one lock by turns and write its token, while a leader
// is lost and holds are ended by force. The data must never name an older holder again.
func TestGuardedPutsRise(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 5)
		lead := f.leader()
		watched := f.nodes[(lead+1)%5]
		var last atomic.Uint64
		seen := make(chan int, 1)
		go func() { seen <- watchTokens(t, watched, &last) }()
		var all sync.WaitGroup
		lost := make(chan struct{}, 1000)
		for i := range 4 {
			n := f.nodes[(lead+1+i)%5]
			all.Go(func() {
				for range 25 {
					if !writeToken(t, n) {
						lost <- struct{}{}
					}
				}
			})
		}
		all.Go(func() {
			time.Sleep(time.Second)
			f.crash(lead)
		})
		ctx, written := context.WithCancel(t.Context())
		var forces sync.WaitGroup
		forces.Go(func() {
			for range 30 {
				for ctx.Err() == nil {
					info, err := watched.Peek(ctx, "job")
					if time.Sleep(10 * time.Millisecond); err != nil || info.Held == 0 {
						continue
					}
					if ended, _ := watched.ForceUnlock(ctx, "job", info.Queue[0].Token, "test"); ended {
						break
					}
				}
			}
		})
		all.Wait()
		written()
		forces.Wait()
		_, revision, err := watched.Get(t.Context(), "checkpoint")
		if err != nil {
			t.Fatal(err)
		}
		last.Store(revision)
		if n := 100 - len(lost); n < 50 || n == 100 {
			t.Errorf("%d of 100 holders wrote", n)
		} else { // after the failover, the watch may begin with the present state
			t.Logf("%d of 100 holders wrote, and a watch saw %d of the writes", n, <-seen)
		}
	})
}

// watchTokens counts the writes up to the revision in last, once it is set. Their tokens must rise.
func watchTokens(t *testing.T, n *node, last *atomic.Uint64) (writes int) {
	newest, revision := uint64(0), uint64(0)
	for e, err := range n.Watch(t.Context(), "checkpoint", 0) {
		if err != nil {
			t.Error(err)
			return writes
		}
		if e.Kind == mortise.EventData && e.Revision > revision {
			token, _ := strconv.ParseUint(string(e.Data), 10, 64)
			if token <= newest {
				t.Errorf("token %d after %d", token, newest)
			}
			newest, revision, writes = token, e.Revision, writes+1
		}
		if until := last.Load(); until != 0 && revision >= until {
			break
		}
	}
	return writes
}

// writeToken takes the lock and writes its token to the checkpoint. It reports false if the lock
// was lost meanwhile.
func writeToken(t *testing.T, n *node) bool {
	l, err := n.Lock(t.Context(), "job")
	if err != nil {
		t.Error(err)
		return true
	}
	defer func() { _ = l.Unlock(t.Context()) }()
	old, revision, err := n.Get(t.Context(), "checkpoint")
	if err != nil {
		t.Error(err)
		return true
	}
	time.Sleep(50 * time.Millisecond) // fake time, in which the hold may be ended
	before, _ := strconv.ParseUint(string(old), 10, 64)
	_, err = l.Put(t.Context(), "checkpoint", strconv.AppendUint(nil, uint64(l.Token()), 10), revision)
	switch {
	case err == nil && mortise.Token(before) >= l.Token():
		t.Errorf("token %d replaced %d", l.Token(), before)
	case err == nil:
		return true
	case errors.Is(err, mortise.ErrLost):
	case errors.Is(err, mortise.ErrConflict): // of the next holder
		if held, err := n.Check(t.Context(), "job", l.Token()); held || err != nil {
			t.Errorf("the data was changed under a held lock: %v, %v", held, err)
		}
	default:
		t.Error(err)
	}
	return false
}

// TestAGuardedPutNeedsTheHold checks each reason for which a guarded Put changes nothing.
func TestAGuardedPutNeedsTheHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		ctx, n := t.Context(), f.nodes[f.follower()]
		l := f.acquire(0, mortise.Request{Key: "a", Also: []mortise.Part{{Key: "b"}}})
		first, err := l.Put(ctx, "data", []byte("1"), 0)
		if err != nil || first == 0 {
			t.Fatalf("%d, %v", first, err)
		}
		if _, err := l.Put(ctx, "data", []byte("2"), 0); !errors.Is(err, mortise.ErrConflict) {
			t.Errorf("at an old revision: %v", err)
		}
		if _, err := l.Put(ctx, "", []byte("2"), 0); !errors.Is(err, mortise.ErrBadKey) {
			t.Errorf("without a key: %v", err)
		}
		again, err := n.ForceUnlock(ctx, "a", l.Token(), "test")
		if !again || err != nil {
			t.Fatal(again, err)
		}
		if _, err := l.Put(ctx, "data", []byte("2"), first); !errors.Is(err, mortise.ErrLost) {
			t.Errorf("after a forced end: %v", err)
		}
		unlock(t, f.acquire(1, mortise.Request{Key: "a"}))
		l = f.acquire(0, mortise.Request{Key: "a", Mode: mortise.Shared})
		second, err := l.Put(ctx, "data", []byte("3"), first)
		if err != nil || second <= first {
			t.Errorf("a reader: %d, %v", second, err)
		}
		unlock(t, l)
		if _, err := l.Put(ctx, "data", nil, second); !errors.Is(err, mortise.ErrUnlocked) {
			t.Errorf("after Unlock: %v", err)
		}
		l = f.acquire(0, stickily{key: "a"})
		if _, err := l.Put(ctx, "data", nil, second); !errors.Is(err, mortise.ErrBadRequest) ||
			!strings.Contains(err.Error(), "sticky") {
			t.Errorf("with Sticky: %v", err)
		}
		unlock(t, l)
		if data, at, err := n.Get(ctx, "data"); string(data) != "3" || at != second || err != nil {
			t.Errorf("%q at %d, %v", data, at, err)
		}
	})
}
