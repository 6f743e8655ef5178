package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

func downgrade(t *testing.T, l *mortise.Lock) {
	t.Helper()
	if err := l.Downgrade(t.Context()); err != nil {
		t.Fatalf("Downgrade: %v", err)
	}
	if err := l.Err(); err != nil {
		t.Fatalf("after Downgrade: %v", err)
	}
}

func TestDowngrade(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.acquire(0, mortise.Request{Key: "k"})
		token := l.Token()
		one := f.later(1, mortise.Request{Key: "k", Mode: mortise.Shared})
		two := f.later(2, mortise.Request{Key: "k", Mode: mortise.Shared})
		writer := f.later(1, mortise.Request{Key: "k"})
		late := f.later(2, mortise.Request{Key: "k", Mode: mortise.Shared})
		waits(t, "a reader behind the writer", one)
		downgrade(t, l)
		downgrade(t, l) // again
		a, b := comes(t, "the first reader", one), comes(t, "the second reader", two)
		waits(t, "the next writer", writer)
		waits(t, "a reader behind the next writer", late)
		if l.Token() != token || a.Token() < token || b.Token() < token {
			t.Errorf("the tokens are %d, then %d, %d and %d", token, l.Token(), a.Token(), b.Token())
		}
		info, err := f.nodes[1].Peek(t.Context(), "k")
		if err != nil || info.Held != 3 || info.Queue[0].Mode != mortise.Shared || info.Queue[0].Token != token {
			t.Errorf("Peek: %+v, %v", info, err)
		}
		unlock(t, a)
		unlock(t, b)
		waits(t, "the next writer beside the first", writer)
		unlock(t, l)
		unlock(t, comes(t, "the next writer", writer))
		unlock(t, comes(t, "the last reader", late))
		if err := l.Downgrade(t.Context()); !errors.Is(err, mortise.ErrUnlocked) {
			t.Errorf("after Unlock: %v", err)
		}
		f.nothingLeft()
	})
}

func TestDowngradeOfSeveralKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.acquire(0, mortise.Request{Key: "a", Also: []mortise.Part{{Key: "b"}}})
		one := f.later(1, mortise.Request{Key: "a", Mode: mortise.Shared})
		two := f.later(2, mortise.Request{Key: "b", Mode: mortise.Shared})
		downgrade(t, l)
		unlock(t, comes(t, "a reader of a", one))
		unlock(t, comes(t, "a reader of b", two))
		unlock(t, l)
		f.nothingLeft()
	})
}

// TestDowngradeSurvivesAFailover downgrades a lock while there is no leader.
func TestDowngradeSurvivesAFailover(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		leader := f.leader()
		l := f.acquire((leader+1)%3, mortise.Request{Key: "k"})
		reader := f.later((leader+2)%3, mortise.Request{Key: "k", Mode: mortise.Shared})
		f.crash(leader)
		began := time.Now()
		downgrade(t, l)
		t.Logf("confirmed after %v", time.Since(began))
		unlock(t, comes(t, "the reader", reader))
		unlock(t, l)
	})
}

// TestTheLastWriterLeaves enters an exclusive lock again as a reader. The lock is as strong as the
// strongest of its handles.
func TestTheLastWriterLeaves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		outer := f.acquire(0, mortise.Request{Key: "k"})
		ctx := outer.Context(t.Context())
		inner, err := f.nodes[0].Lock(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		read, err := f.nodes[0].RLock(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		other := f.later(1, mortise.Request{Key: "k", Mode: mortise.Shared})
		if err := outer.Downgrade(ctx); !errors.Is(err, mortise.ErrBadRequest) {
			t.Errorf("Downgrade beside another writer of the same lock: %v", err)
		}
		if err := read.Downgrade(ctx); err != nil {
			t.Errorf("Downgrade of a reader's handle: %v", err)
		}
		unlock(t, inner)
		waits(t, "a reader beside a writer", other)
		unlock(t, outer)
		unlock(t, comes(t, "a reader beside a reader", other))
		if err := read.Err(); err != nil {
			t.Errorf("the last handle: %v", err)
		}
		_, err = f.nodes[0].Lock(read.Context(t.Context()), "k")
		var deadlock *mortise.DeadlockError
		if !errors.As(err, &deadlock) || !strings.Contains(err.Error(), "upgraded") {
			t.Errorf("a writer under its own downgraded lock: %v", err)
		}
		unlock(t, read)
		f.nothingLeft()
	})
}

func TestWhatCannotBeDowngraded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		for field, r := range map[string]any{
			"semaphore": mortise.Request{Key: "s", Mode: mortise.Permits(1, 2)}, "sticky": stickily{key: "t"},
		} {
			l := f.acquire(0, r)
			err := l.Downgrade(t.Context())
			if !errors.Is(err, mortise.ErrBadRequest) || !strings.Contains(err.Error(), field) || l.Err() != nil {
				t.Errorf("%s: %v, held: %v", field, err, l.Err())
			}
			unlock(t, l)
		}
		permit := f.acquire(0, mortise.Request{Key: "p", Mode: mortise.Permits(1, 2), LockDelay: time.Minute})
		if err := permit.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		resumed := f.acquire(1, resuming{key: "p", token: permit.Token()})
		if err := resumed.Downgrade(t.Context()); !errors.Is(err, mortise.ErrBadRequest) || resumed.Err() != nil {
			t.Errorf("a resumed permit: %v, held: %v", err, resumed.Err())
		}
		unlock(t, resumed)
		shared := f.acquire(0, mortise.Request{Key: "k", Mode: mortise.Shared})
		downgrade(t, shared)
		unlock(t, shared)
	})
}
