package e2e

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mortise-lock/mortise"
)

// TestGuardedPutsRise lets all instances take one lock by turns and write its token, while a leader
// is lost and holds are ended by force. The data must never name an older holder again.
func TestGuardedPutsRise(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 5)
		lead := f.leader()
		watched := f.nodes[(lead+1)%5]
		ctx, end := context.WithCancel(t.Context())
		rises := make(chan int, 1)
		go func() { rises <- watchTokens(t, ctx, watched) }()
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
		all.Go(func() { f.crash(lead) })
		all.Go(func() {
			for range 20 {
				if info, err := watched.Peek(t.Context(), "job"); err == nil && info.Held > 0 {
					_, _ = watched.ForceUnlock(t.Context(), "job", info.Queue[0].Token, "test")
				}
			}
		})
		all.Wait()
		synctest.Wait()
		end()
		if n := <-rises; n < 50 {
			t.Errorf("%d writes", n)
		} else {
			t.Logf("%d writes, %d holders that had lost the lock", n, len(lost))
		}
	})
}

// watchTokens counts the writes until ctx ends. Their tokens must rise.
func watchTokens(t *testing.T, ctx context.Context, n *node) (writes int) {
	newest := uint64(0)
	for e, err := range n.Watch(ctx, "checkpoint", 0) {
		switch {
		case ctx.Err() != nil:
			return writes
		case err != nil:
			t.Error(err)
		case e.What == mortise.EventData:
			token, _ := strconv.ParseUint(string(e.Data), 10, 64)
			if token <= newest {
				t.Errorf("token %d after %d", token, newest)
			}
			newest, writes = token, writes+1
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
		l := f.acquire(0, mortise.Request{Keys: []string{"a", "b"}})
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
		l = f.acquire(0, mortise.Request{Key: "a", Shared: true})
		second, err := l.Put(ctx, "data", []byte("3"), first)
		if err != nil || second <= first {
			t.Errorf("a reader: %d, %v", second, err)
		}
		unlock(t, l)
		if _, err := l.Put(ctx, "data", nil, second); !errors.Is(err, mortise.ErrUnlocked) {
			t.Errorf("after Unlock: %v", err)
		}
		l = f.acquire(0, mortise.Request{Key: "a", Sticky: true})
		if _, err := l.Put(ctx, "data", nil, second); !errors.Is(err, mortise.ErrBadRequest) ||
			!strings.Contains(err.Error(), "Sticky") {
			t.Errorf("with Sticky: %v", err)
		}
		unlock(t, l)
		if data, at, err := n.Get(ctx, "data"); string(data) != "3" || at != second || err != nil {
			t.Errorf("%q at %d, %v", data, at, err)
		}
	})
}
