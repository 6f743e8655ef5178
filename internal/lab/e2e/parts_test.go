package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// tries reports which of the requests node i gets at once, each alone.
func (f *fleet) tries(i int, requests ...mortise.Request) (got []bool) {
	f.t.Helper()
	for _, r := range requests {
		r.Try = true
		l, err := f.nodes[i].Acquire(f.t.Context(), r)
		if err == nil {
			unlock(f.t, l)
		} else {
			wantIs(f.t, err, mortise.ErrHeld)
		}
		got = append(got, err == nil)
	}
	return got
}

// mixed locks a node exclusively, another node as shared, a key exclusively and a key as shared.
var mixed = mortise.Request{Key: "z", Also: []mortise.Part{
	{Key: "t/w", Tree: true}, {Key: "t/r", Mode: mortise.Shared, Tree: true}, {Key: "s", Mode: mortise.Shared}}}

// Each part of mixed excludes what a request for it alone excludes, and no more.
var (
	excluded = []mortise.Request{{Key: "z", Mode: mortise.Shared}, {Key: "t/w/x", Mode: mortise.Shared, Tree: true},
		{Key: "t/r/x", Tree: true}, {Key: "s"}, {Key: "t"}, {Key: "t", Mode: mortise.Shared, Tree: true}}
	alongside = []mortise.Request{{Key: "s", Mode: mortise.Shared}, {Key: "t/r/x", Mode: mortise.Shared, Tree: true},
		{Key: "t/q", Tree: true}, {Key: "t", Mode: mortise.Shared}}
)

// TestPartsOfEveryMode checks the effect of each part of one request: one moment, one token, and
// one queue for each key.
func TestPartsOfEveryMode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.acquire(0, mixed)
		if l.Key() != "z" {
			t.Errorf("the key is %q", l.Key())
		}
		if got := f.tries(1, excluded...); fmt.Sprint(got) != fmt.Sprint(make([]bool, len(excluded))) {
			t.Errorf("granted beside it: %v", got)
		}
		for i, got := range f.tries(1, alongside...) {
			if !got {
				t.Errorf("not granted beside it: %+v", alongside[i])
			}
		}
		for _, key := range []string{"z", "t", "t/w", "t/r", "s"} {
			if held, err := f.nodes[1].Check(brief(t), key, l.Token()); !held || err != nil {
				t.Errorf("%s is not held with the token: %v", key, err)
			}
		}
		ctx := l.Context(t.Context())
		for _, r := range []mortise.Request{{Key: "z"}, {Key: "s", Mode: mortise.Shared}, {Key: "t/w/x", Tree: true},
			{Key: "t/r/x", Mode: mortise.Shared, Tree: true}, mixed} {
			again, err := f.nodes[0].Acquire(ctx, r)
			if err != nil || again.Token() != l.Token() || again.Key() != "z" {
				t.Fatalf("%+v is not entered: %v", r, err)
			}
			unlock(t, again)
		}
		for _, r := range []mortise.Request{{Key: "s"}, {Key: "t/r", Tree: true},
			{Key: "z", Also: []mortise.Part{{Key: "s"}}}} { // the first part alone is covered
			var deadlock *mortise.DeadlockError
			if _, err := f.nodes[0].Acquire(ctx, r); !errors.As(err, &deadlock) {
				t.Errorf("%+v: %v", r, err)
			}
		}
		part, err := f.nodes[0].Acquire(ctx, mortise.Request{Key: "other", Also: []mortise.Part{{Key: "s",
			Mode: mortise.Shared}}})
		if err != nil || part.Token() == l.Token() {
			t.Errorf("a request that is partly covered is entered: %v", err)
		}
		unlock(t, part)
		unlock(t, l)

		// A handle with one exclusive part writes, so its lock stays exclusive when it is the last one.
		all := f.acquire(0, mortise.Request{Key: "a", Also: []mortise.Part{{Key: "b"}}})
		inner, err := f.nodes[0].Acquire(all.Context(t.Context()), mortise.Request{Key: "a", Mode: mortise.Shared,
			Also: []mortise.Part{{Key: "b"}}})
		if err != nil || inner.Token() != all.Token() {
			t.Fatal(err)
		}
		unlock(t, all)
		time.Sleep(50 * time.Millisecond)
		if got := f.tries(1, mortise.Request{Key: "b", Mode: mortise.Shared}); got[0] {
			t.Error("a reader is granted beside a handle that writes")
		}
		unlock(t, inner)

		// All or none: while a part waits, the others are taken, and no token is given.
		holder := f.lock(2, "s")
		waiting := f.later(0, mixed)
		waits(t, "a request with a part that is held", waiting)
		if got := f.tries(1, mortise.Request{Key: "free"}); !got[0] {
			t.Error("a key of no part")
		}
		unlock(t, holder)
		unlock(t, comes(t, "all parts", waiting))
		f.nothingLeft()
	})
}

// TestDowngradeOfParts makes mixed shared: its nodes stay closed to writers below them.
func TestDowngradeOfParts(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		for _, resumed := range []bool{false, true} {
			r := mixed
			r.LockDelay = time.Minute
			l := f.acquire(0, r)
			if resumed {
				l = f.acquire(1, resuming{key: "t", token: l.Token()})
				if l.Key() != "t" {
					t.Errorf("the key is %q", l.Key())
				}
			}
			token := l.Token()
			downgrade(t, l)
			if l.Token() != token || l.Err() != nil {
				t.Fatal(l.Token(), l.Err())
			}
			for i, r := range excluded[:2] {
				if !f.tries(2, r)[0] {
					t.Errorf("resumed: %v, a reader is refused: %+v, %d", resumed, r, i)
				}
			}
			for _, r := range []mortise.Request{{Key: "z"}, {Key: "t/w/x", Tree: true}, {Key: "t/r/x", Tree: true},
				{Key: "s"}, {Key: "t"}, {Key: "t", Tree: true}} {
				if f.tries(2, r)[0] {
					t.Errorf("resumed: %v, a writer is granted: %+v", resumed, r)
				}
			}
			if !resumed && !f.tries(2, mortise.Request{Key: "z/x", Tree: true})[0] {
				t.Error("a key that was locked without Tree is closed to writers of the nodes below")
			}
			if !f.tries(2, mortise.Request{Key: "t", Mode: mortise.Shared, Tree: true})[0] {
				t.Errorf("resumed: %v, the nodes above have no intention to write any more", resumed)
			}
			unlock(t, l)
		}
		f.nothingLeft()
	})
}

// TestDowngradeOfAnUpgradableLock makes an upgradable lock shared, before and during its upgrade,
// and an upgradable handle of an exclusive lock.
func TestDowngradeOfAnUpgradableLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 2)
		other := mortise.Request{Key: "k", Mode: mortise.Upgradable}
		for _, upgraded := range []bool{false, true} {
			l := f.acquire(0, other)
			var up *mortise.Lock
			if upgraded {
				up = upgrade(t, l)
			}
			if got := f.tries(1, other); got[0] {
				t.Error("two upgradable locks")
			}
			downgrade(t, l)
			if upgraded {
				wantIs(t, up.Err(), mortise.ErrLost)
				wantIs(t, up.Unlock(t.Context()), mortise.ErrLost)
			}
			if got := f.tries(1, other, mortise.Request{Key: "k"}); !got[0] || got[1] {
				t.Errorf("beside a shared lock: %v", got)
			}
			_, err := l.Upgrade(t.Context())
			wantIs(t, err, mortise.ErrBadRequest)
			unlock(t, l)
		}
		outer := f.lock(0, "k")
		inner, err := f.nodes[0].Acquire(outer.Context(t.Context()), other)
		if err != nil {
			t.Fatal(err)
		}
		up := upgrade(t, inner)
		unlock(t, outer)
		downgrade(t, inner)
		if err := up.Err(); err != mortise.ErrUnlocked {
			t.Errorf("the upgrade of a handle that was made shared: %v", err)
		}
		if _, err := inner.Upgrade(t.Context()); !errors.Is(err, mortise.ErrBadRequest) {
			t.Errorf("Upgrade of a handle that was made shared: %v", err)
		}
		if got := f.tries(1, mortise.Request{Key: "k", Mode: mortise.Shared}, mortise.Request{Key: "k"}); !got[0] || got[1] {
			t.Errorf("beside a shared handle: %v", got)
		}
		unlock(t, inner)
		f.nothingLeft()
	})
}

// TestAResumedReaderStaysAReader resumes two shared holds. No exclusive request enters them.
func TestAResumedReaderStaysAReader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		for i := range 2 {
			r := f.acquire(0, mortise.Request{Key: "k", Mode: mortise.Shared, LockDelay: time.Minute})
			if err := r.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			l := f.acquire(i+1, resuming{key: "k", token: r.Token()})
			defer unlock(t, l)
			var deadlock *mortise.DeadlockError
			if w, err := f.nodes[i+1].Lock(l.Context(t.Context()), "k"); !errors.As(err, &deadlock) {
				t.Errorf("a writer under a resumed reader: %v, %v", w, err)
			}
		}
	})
}

// TestAResumedPermitStaysAPermit checks the same for Do under a permit of a semaphore.
func TestAResumedPermitStaysAPermit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		permit := mortise.Request{Key: "s", Mode: mortise.Permits(1, 2), LockDelay: time.Minute}
		s := f.acquire(0, permit)
		if err := s.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		other := f.acquire(2, permit)
		defer unlock(t, other)
		l := f.acquire(1, resuming{key: "s", token: s.Token()})
		defer unlock(t, l)
		err := f.nodes[1].Do(l.Context(t.Context()), "s", func(context.Context, mortise.Token) error {
			t.Error("it runs as if it were alone, beside another permit")
			return nil
		})
		if err == nil {
			t.Error("no error")
		}
	})
}

// TestMaxHoldOfTheFirstHandle unlocks the first handle in time. Its MaxHold then ends no other.
func TestMaxHoldOfTheFirstHandle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		l := f.acquire(0, mortise.Request{Key: "k", MaxHold: time.Second})
		inner, err := f.nodes[0].Lock(l.Context(t.Context()), "k")
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, l)
		time.Sleep(1100 * time.Millisecond)
		if err := inner.Err(); err != nil {
			t.Errorf("the inner handle has no MaxHold: %v", err)
		}
		unlock(t, inner)
	})
}

// TestMaxWaitingOfANode counts no waiters of other branches at a node that is free.
func TestMaxWaitingOfANode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		a := f.acquire(0, mortise.Request{Key: "t/a", Tree: true})
		waiting := f.later(1, mortise.Request{Key: "t/a", Tree: true})
		unlock(t, f.acquire(2, mortise.Request{Key: "t/b", Tree: true, MaxWaiting: 1}))
		unlock(t, f.acquire(2, mortise.Request{Key: "x", Also: []mortise.Part{{Key: "t/b", Tree: true}}, MaxWaiting: 1}))
		unlock(t, a)
		unlock(t, comes(t, "the waiter", waiting))
		synctest.Wait()
		f.nothingLeft()
	})
}
