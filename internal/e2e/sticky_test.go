package e2e

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
)

// TestStickyIsLocalUntilItIsWanted locks a key repeatedly on one instance, and then on another.
func TestStickyIsLocalUntilItIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFleet(t, 3)
		time.Sleep(10 * time.Second) // the rules are raised
		ctx := t.Context()
		r := mortise.Request{Key: "k", Sticky: true}
		a, b := f.nodes[0], f.nodes[1]
		var before mortise.Token
		for i := range 3000 {
			began := time.Now()
			l, err := a.Acquire(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); i == 1 && took > 0 {
				t.Fatalf("the second lock took %v, and needs no message", took)
			}
			if l.Token() <= before {
				t.Fatalf("token %d after %d", l.Token(), before)
			}
			before = l.Token()
			if err := l.Unlock(ctx); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		l, err := b.Acquire(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("another instance was granted the lock %v later", time.Since(began))
		if l.Token() <= before {
			t.Fatalf("token %d after %d", l.Token(), before)
		}
		if err := l.Unlock(ctx); err != nil {
			t.Fatal(err)
		}
		// b keeps the lock, free: a TryLock on a is granted it.
		if l, err = a.TryLock(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(ctx); err != nil {
			t.Fatal(err)
		}
		// b keeps the lock, in use: a TryLock on a says so.
		l, err = b.Acquire(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		var held *mortise.HeldError
		if _, err := a.TryLock(ctx, "k"); !errors.As(err, &held) || held.Token != l.Token() {
			t.Fatalf("TryLock: %v, want held with token %d", err, l.Token())
		}
		if err := l.Unlock(ctx); err != nil {
			t.Fatal(err)
		}
		f.nothingLeft()
	})
}
