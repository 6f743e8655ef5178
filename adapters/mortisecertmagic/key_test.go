package mortisecertmagic

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// TestTheKeyOfEachName compares the key for names at the limit of the length, and for names that no
// key may have.
func TestTheKeyOfEachName(t *testing.T) {
	hashed := func(prefix, name string) string {
		return fmt.Sprintf("%ssha256/%x", prefix, sha256.Sum256([]byte(name)))
	}
	for _, prefix := range []string{"p/", strings.Repeat("p", 256)} {
		fits := strings.Repeat("x", maxKey-len(prefix))
		for name, plain := range map[string]bool{"": true, "a": true, "a/b c": true, "Zürich": true, fits: true,
			fits + "x": false, fits[1:] + "ü": false, "a\x00": false, "a\nb": false, "a\u0085": false, "\xff": false,
			strings.Repeat("y", 2000): false} {
			want := prefix + name
			if !plain {
				want = hashed(prefix, name)
			}
			if got := Wrap(nil, nil, Options{Prefix: prefix}).key(name); got != want {
				t.Errorf("%.40q after a prefix of %d: %s, want %s", name, len(prefix), got, want)
			}
		}
	}
}

// TestWhatALockAsks compares the key and the labels of a lock that is held, and what the Storage
// remembers, for each way to lock.
func TestWhatALockAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.New(t, 1)
		for prefix, key := range map[string]string{"": "certmagic/job", "p/": "p/job"} {
			s := Wrap(nil, c.Node(0), Options{Prefix: prefix})
			for what, lock := range map[string]func() error{
				"Lock": func() error { return s.Lock(t.Context(), "job") },
				"TryLock": func() error {
					ok, err := s.TryLock(t.Context(), "job")
					if again, busy := s.TryLock(t.Context(), "job"); !ok || again || busy != nil {
						t.Errorf("TryLock: %v, then %v, %v", ok, again, busy)
					}
					return err
				},
			} {
				if err := lock(); err != nil {
					t.Fatal(err)
				}
				info, err := c.Node(0).Peek(t.Context(), key)
				if err != nil || info.Held != 1 || fmt.Sprint(info.Queue[0].Labels) != "map[mortise.purpose:job]" ||
					len(s.held) != 1 || len(s.held["job"]) != 1 || s.held["job"][0].lock.Token() != info.Queue[0].Token {
					t.Errorf("%s: %+v, %v, %+v", what, info, err, s.held)
				}
				if err := s.Unlock(t.Context(), "job"); err != nil || len(s.held) > 0 {
					t.Errorf("%s: Unlock: %v, %v", what, err, s.held)
				}
				c.Await(key, 0, 0)
			}
		}
	})
}

// TestWhichEntryIsRenewed compares the entry that a loop of retries renews with the best one of
// each pair of entries, in both orders.
func TestWhichEntryIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, loop := mortisetest.New(t, 1), new(int)
		lost, err := c.Node(0).Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := lost.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		held, err := c.Node(0).Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		// The ranks of the entries, the best first. None is chosen while it is being renewed.
		ranked := [][]entry{
			{{lock: held, loop: loop}, {lock: lost, loop: loop}},
			{{lock: held}},
			{{lock: lost}},
			{{lock: held, loop: new(int)}, {lock: lost, loop: new(int)}},
			{{lock: held, renewing: true}, {lock: held, loop: loop, renewing: true}},
		}
		for i, better := range ranked {
			for j, worse := range ranked[i:] {
				for _, b := range better {
					for _, w := range worse {
						for _, first := range []bool{true, false} {
							one, two := b, w
							entries, chosen := []*entry{&one, &two}, &one
							if !first {
								entries = []*entry{&two, &one}
							}
							if j == 0 { // the first of equals
								chosen = entries[0]
							}
							if i == len(ranked)-1 {
								chosen = nil
							}
							s := &Storage{held: map[string][]*entry{"job": entries}}
							got, isLost := s.renews(loop, "job")
							if got != chosen || isLost != (chosen != nil && chosen.lock == lost) ||
								got != nil && (got.loop != loop || got.renewing != isLost) {
								t.Errorf("%+v, %+v, the better first: %v: %+v, %v", b, w, first, got, isLost)
							}
						}
					}
				}
			}
		}
		s := &Storage{held: map[string][]*entry{"job": {{lock: held}}}}
		if got, _ := s.renews(nil, "job"); got == nil || got.loop != nil {
			t.Errorf("without a loop: %+v", got)
		}
		if err := held.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestTheContextsOfCallsEnd checks that no context of a call to the node outlives the call, with
// its timer.
func TestTheContextsOfCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []context.Context
		c := mortisetest.NewWith(t, 1, mortisetest.Options{MayHold: true, Configure: func(_ int, c *mortise.Config) {
			c.Hooks = &mortise.Hooks{
				Acquired: func(ctx context.Context, _ mortise.LockEvent) any { all = append(all, ctx); return nil },
				Unlocked: func(ctx context.Context, _ mortise.LockEvent) { all = append(all, ctx) }}
		}})
		s, ctx := Wrap(nil, c.Node(0), Options{}), t.Context()
		if err := errors.Join(s.Lock(ctx, "job"), s.Unlock(ctx, "job")); err != nil {
			t.Fatal(err)
		}
		all = all[1:] // the context of Lock is that of the caller
		if len(all) != 1 {
			t.Errorf("%d calls", len(all))
		}
		for i, ctx := range all {
			if ctx.Err() == nil {
				t.Errorf("the context of call %d goes on", i)
			}
		}
	})
}
