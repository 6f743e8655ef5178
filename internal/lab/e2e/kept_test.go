package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

var sticky = stickily{key: "k"}

// kept returns a fleet of three nodes in which node 0 holds a kept lock, and the entry of that lock
// in Peek.
func kept(t *testing.T) (*fleet, *mortise.Lock, mortise.Standing) {
	t.Helper()
	f := startFleet(t, 3)
	time.Sleep(10 * time.Second) // the rules are raised
	l := f.acquire(0, sticky)
	return f, l, f.peek(1, "k").Queue[0]
}

func wantKept(t *testing.T, err error, parts ...string) {
	t.Helper()
	wantIs(t, err, mortise.ErrKept)
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not contain %s", err, part)
		}
	}
}

// TestCheckOfAKeptLock checks that no instance denies the token of a caller of a kept lock, and
// that the answer is exact again when the lock is no longer kept.
func TestCheckOfAKeptLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l, s := kept(t)
		check := func(token mortise.Token) (answers []string) {
			for _, n := range f.nodes {
				held, err := n.Check(brief(t), "k", token)
				if err != nil {
					wantKept(t, err, "node-0", fmt.Sprint(s.Token), fmt.Sprint(token), "package fence")
					held = false
				}
				answers = append(answers, fmt.Sprint(held, err != nil))
			}
			return answers
		}
		wants := func(what string, token mortise.Token, want string) {
			t.Helper()
			for i, got := range check(token) {
				if got != want {
					t.Errorf("%s, node %d: held and failed are %s, want %s", what, i, got, want)
				}
			}
		}
		wants("in use", l.Token(), "false true")
		wants("a token before", s.Token-1, "false false")
		unlock(t, l)
		wants("free", l.Token(), "false true")
		other := f.lock(1, "k")
		wants("ended", l.Token(), "false false")
		wants("the next lock", other.Token(), "true false")
		unlock(t, other)
		f.nothingLeft()
	})
}

// TestKeptLocksAreShown checks that Peek, List and HeldError distinguish a kept lock from a held
// one.
func TestKeptLocksAreShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l, s := kept(t)
		if !s.Kept || s.Holder != "node-0" || s.Token == 0 || s.Token >= l.Token() {
			t.Errorf("the lock with token %d is shown as %+v", l.Token(), s)
		}
		plain := f.lock(0, "plain")
		listed := map[string]bool{}
		for info, err := range f.nodes[2].List(brief(t), "") {
			if err != nil || len(info.Queue) != 1 {
				t.Fatalf("%+v, %v", info, err)
			}
			listed[info.Key] = info.Queue[0].Kept
		}
		if want := map[string]bool{"k": true, "plain": false}; !maps.Equal(listed, want) {
			t.Errorf("listed as kept: %v, want %v", listed, want)
		}
		local := sticky
		local.Try = true
		if _, err := acquire(brief(t), f.nodes[0], local); !errors.Is(err, mortise.ErrHeld) ||
			!strings.Contains(err.Error(), "is held by node-0 (token ") {
			t.Errorf("%v", err)
		}
		_, err := f.nodes[1].TryLock(brief(t), "k")
		if held, ok := errors.AsType[*mortise.HeldError](err); !ok || !held.Kept ||
			!strings.Contains(err.Error(), "is kept by node-0") {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := f.nodes[1].Lock(ctx, "k"); err == nil || !strings.Contains(err.Error(), "node-0 kept it") {
			t.Errorf("%v", err)
		}
		_, err = f.nodes[1].TryLock(brief(t), "plain")
		if held, ok := errors.AsType[*mortise.HeldError](err); !ok || held.Kept ||
			!strings.Contains(err.Error(), "is held by node-0") {
			t.Errorf("%v", err)
		}
		unlock(t, plain)
		unlock(t, l)
		f.nothingLeft()
	})
}

// TestForceUnlockOfAKeptLock ends a kept lock that a caller holds and for which another caller of
// its instance waits. Only the token that Peek reports ends it.
func TestForceUnlockOfAKeptLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l, s := kept(t)
		next := f.later(0, sticky)
		ended, err := f.nodes[2].ForceUnlock(brief(t), "k", l.Token(), "hangs")
		wantKept(t, err, "node-0", fmt.Sprint("use token ", s.Token))
		if ended || l.Err() != nil {
			t.Errorf("the token of a caller: %v, and the lock has ended: %v", ended, l.Err())
		}
		if ended, err := f.nodes[2].ForceUnlock(brief(t), "k", s.Token, "hangs"); !ended || err != nil {
			t.Errorf("the token of Peek: %v, %v", ended, err)
		}
		synctest.Wait()
		forced, ok := errors.AsType[*mortise.ForcedError](l.Err())
		if !ok || forced.By != "node-2" || forced.Reason != "hangs" {
			t.Errorf("the holder is told: %v", l.Err())
		}
		wantIs(t, l.Unlock(t.Context()), mortise.ErrLost)
		after := comes(t, "the caller that waited", next)
		f.keptAnew(s, after)
		f.nothingLeft()
	})
}

// keptAnew checks that a caller was granted the lock out of a later stay than the given one.
func (f *fleet) keptAnew(ended mortise.Standing, l *mortise.Lock) {
	f.t.Helper()
	if now := f.peek(1, "k").Queue[0]; now.Token <= ended.Token || l.Token() <= now.Token {
		f.t.Errorf("token %d, after the end of the lock with token %d, now shown as %+v", l.Token(), ended.Token, now)
	}
	unlock(f.t, l)
}

// TestForceUnlockOfAFreeKeptLock checks that the next caller on the instance asks the group.
func TestForceUnlockOfAFreeKeptLock(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f, l, s := kept(t)
		unlock(t, l)
		if ended, err := f.nodes[2].ForceUnlock(brief(t), "k", s.Token, "test"); !ended || err != nil {
			t.Errorf("%v, %v", ended, err)
		}
		synctest.Wait()
		if info := f.peek(1, "k"); len(info.Queue) != 0 {
			t.Errorf("%+v", info)
		}
		next := f.acquire(0, sticky)
		f.keptAnew(s, next)
		f.nothingLeft()
	})
}

// TestStickyUnderAnotherLock checks that a sticky request under another lock is an ordinary one.
func TestStickyUnderAnotherLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		time.Sleep(10 * time.Second) // the rules are raised
		for _, r := range []any{mortise.Request{Key: "outer"}, stickily{key: "outer"}} {
			outer := f.acquire(0, r)
			inner, err := acquire(outer.Context(t.Context()), f.nodes[0], sticky)
			if err != nil {
				t.Fatal(err)
			}
			if s := f.peek(1, "k").Queue[0]; s.Kept || s.Token != inner.Token() {
				t.Errorf("under %+v, the lock with token %d is shown as %+v", r, inner.Token(), s)
			}
			if held, err := f.nodes[1].Check(brief(t), "k", inner.Token()); !held || err != nil {
				t.Errorf("%v, %v", held, err)
			}
			unlock(t, inner)
			if info := f.peek(1, "k"); len(info.Queue) != 0 {
				t.Errorf("the lock is kept: %+v", info)
			}
			unlock(t, outer)
		}
		f.nothingLeft()
	})
}
