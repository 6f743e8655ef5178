package e2e

import (
	"errors"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestStickyIsLocalUntilItIsWanted locks a key repeatedly on one instance, and then on another.
func TestStickyIsLocalUntilItIsWanted(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		time.Sleep(10 * time.Second) // the rules are raised
		r := stickily{key: "k"}
		var before mortise.Token
		for i := range 3000 { // more than a grant reserves
			began := time.Now()
			l := f.acquire(0, r)
			if took := time.Since(began); i == 1 && took > 0 {
				t.Fatalf("the second lock took %v, and needs no message", took)
			}
			if l.Token() <= before {
				t.Fatalf("token %d after %d", l.Token(), before)
			}
			before = l.Token()
			unlock(t, l)
		}
		l := f.acquire(1, r)
		if l.Token() <= before {
			t.Fatalf("token %d after %d", l.Token(), before)
		}
		unlock(t, l) // the instance keeps the lock, free
		l, err := f.nodes[0].TryLock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, l)
		l = f.acquire(1, r) // the instance keeps the lock, in use
		var held *mortise.HeldError
		if _, err := f.nodes[0].TryLock(t.Context(), "k"); !errors.As(err, &held) || held.Token != l.Token() {
			t.Fatalf("TryLock: %v, want held with token %d", err, l.Token())
		}
		unlock(t, l)
		f.nothingLeft()
	})
}

// TestStickyUnderALock checks that a sticky request under a lock is an ordinary one, and that a
// sticky lock can be entered again.
func TestStickyUnderALock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		time.Sleep(10 * time.Second) // the rules are raised
		outer := f.acquire(0, stickily{"outer", mortise.StickyOptions{Notice: true}})
		ctx := outer.Context(t.Context())
		inner, err := acquire(ctx, f.nodes[0], stickily{key: "inner"})
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, inner)
		if info, err := f.nodes[0].Peek(t.Context(), "inner"); err != nil || info.Held > 0 {
			t.Errorf("a lock under a lock is kept: %+v, %v", info, err)
		}
		again, err := acquire(ctx, f.nodes[0], stickily{"outer", mortise.StickyOptions{Notice: true}})
		if err != nil || again.Token() != outer.Token() {
			t.Fatalf("entered again: %v", err)
		}
		unlock(t, again)
		unlock(t, outer)
		f.nothingLeft()
	})
}

// In TestSharedStickyLocks two instances keep a shared lock of one key at the same time. A writer
// on the third instance waits only for the readers that hold the lock. Readers that come later wait
// for the writer.
func TestSharedStickyLocks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, func(c *mortise.Config) { c.StickyUnused = time.Hour })
		time.Sleep(10 * time.Second) // the rules are raised
		r := stickily{"k", mortise.StickyOptions{Shared: true}}
		for range 2 {
			for i := range 2 {
				unlock(t, f.acquire(i, r))
			}
		}
		if n := f.peek(2, "k").Held; n != 2 {
			t.Fatalf("%d instances keep the lock, want 2", n)
		}
		began := time.Now()
		readers := []*mortise.Lock{f.acquire(0, r), f.acquire(0, r), f.acquire(1, r)}
		if took := time.Since(began); took > 0 {
			t.Fatalf("three readers took %v, and need no message", took)
		}
		writer := f.later(2, mortise.Request{Key: "k"})
		waits(t, "a writer beside readers", writer)
		late := f.later(0, r)
		for _, l := range readers {
			waits(t, "a reader that came after the writer", late)
			waits(t, "a writer beside readers", writer)
			unlock(t, l)
		}
		w := comes(t, "the writer", writer)
		for _, l := range readers {
			if l.Token() >= w.Token() {
				t.Errorf("the token %d of a reader, and %d of a later writer", l.Token(), w.Token())
			}
		}
		waits(t, "a reader beside the writer", late)
		unlock(t, w)
		l := comes(t, "the reader", late)
		if l.Token() <= w.Token() {
			t.Errorf("the token %d of a reader, and %d of an earlier writer", l.Token(), w.Token())
		}
		unlock(t, l)
	})
}
