package fence_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
	"github.com/mortise-lock/mortise/fence/fencetest"
)

func TestMark(t *testing.T) { fencetest.Run(t, &fence.Mark{}) }

func TestMarkWithFewPlaces(t *testing.T) {
	// The mark has room for only one resource, so a second one evicts the first. The floor must then
	// refuse old tokens of the first.
	t.Run("single", func(t *testing.T) {
		mark := &fence.Mark{Limit: 1}
		for _, c := range []struct {
			resource string
			token    mortise.Token
			ok       bool
		}{{"a", 10, true}, {"b", 20, true}, {"a", 9, false}, {"a", 10, true}, {"c", 5, false}, {"b", 19, false},
			{"b", 20, true}} {
			if err := mark.Advance(t.Context(), c.resource, c.token); (err == nil) != c.ok ||
				err != nil && !errors.Is(err, fence.ErrStale) {
				t.Errorf("%s %d: %v, admitted should be %v", c.resource, c.token, err, c.ok)
			}
		}
	})
	t.Run("never admits what a mark that forgets nothing refuses", func(t *testing.T) {
		for seed := range uint64(200) {
			chance := rand.New(rand.NewPCG(seed, 2))
			mark, all := &fence.Mark{Limit: 1 + chance.IntN(6)}, map[string]mortise.Token{}
			for step := range 200 {
				resource, token := fmt.Sprint(chance.IntN(12)), mortise.Token(1+step/2+chance.IntN(60))
				err := mark.Advance(t.Context(), resource, token)
				if err == nil && token < all[resource] {
					t.Fatalf("seed %d step %d: %s was at %d and admitted %d", seed, step, resource, all[resource],
						token)
				}
				var stale *fence.StaleError
				if errors.As(err, &stale) && token >= all[resource] && !stale.Forgotten {
					t.Fatalf("seed %d step %d: %v, but the resource has seen no more than %d", seed, step, err,
						all[resource])
				}
				if err == nil {
					all[resource] = token
				}
			}
		}
	})
}

func TestMarkRemembersItsLimit(t *testing.T) {
	mark := &fence.Mark{Limit: 100}
	for i := range 1000 {
		if err := mark.Advance(t.Context(), fmt.Sprint(i), mortise.Token(1+i)); err != nil {
			t.Fatal(err) // the tokens rise, so no token is below the floor
		}
	}
	kept := 0
	for i := range 1000 {
		if _, ok := mark.Highest(fmt.Sprint(i)); ok {
			kept++
		}
	}
	if kept < 50 || kept > 100 {
		t.Errorf("%d resources are remembered, want between half of the limit and the limit, 100", kept)
	}
}

func TestMarkChecksForgetsAndHasAFloor(t *testing.T) {
	mark := &fence.Mark{Floor: 3}
	if err := mark.Check("a", 2); !errors.Is(err, fence.ErrStale) {
		t.Errorf("below the floor: %v", err)
	}
	if err := mark.Check("a", 9); err != nil {
		t.Error(err)
	}
	if _, ok := mark.Highest("a"); ok {
		t.Error("Check has remembered what it was asked")
	}
	if err := mark.Advance(t.Context(), "a", 5); err != nil {
		t.Error(err)
	}
	if err := mark.Check("a", 4); err == nil ||
		err.Error() != `fence: token 4 of "a" is older than 5, the highest seen` {
		t.Error(err)
	}
	mark.Forget("a")
	if err := mark.Advance(t.Context(), "a", 4); err != nil {
		t.Errorf("after Forget: %v", err)
	}
	if err := mark.Check("", 4); !errors.Is(err, fence.ErrBadResource) {
		t.Error(err)
	}
}

// Do records a higher token before it waits, cancels the runs of lower tokens, and waits for them.
func TestDoWaitsForLowerTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mark fence.Mark
		inside, let := make(chan error), make(chan bool)
		go mark.Do(t.Context(), "a", 5, func(ctx context.Context) error {
			<-ctx.Done()
			inside <- context.Cause(ctx)
			<-let
			return nil
		})
		synctest.Wait()
		second := false
		done := make(chan error, 1)
		go func() {
			done <- mark.Do(t.Context(), "a", 6, func(context.Context) error { second = true; return nil })
		}()
		var stale *fence.StaleError
		if cause := <-inside; !errors.As(cause, &stale) || stale.Token != 5 || stale.Highest != 6 {
			t.Errorf("the context of the overtaken ended by %v", cause)
		}
		synctest.Wait()
		if second {
			t.Error("6 runs while 5 has not returned")
		}
		if err := mark.Do(t.Context(), "a", 5,
			func(context.Context) error { t.Error("5 runs again"); return nil }); !errors.Is(err, fence.ErrStale) {
			t.Errorf("5 while 6 waits: %v", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := mark.Do(ended, "a", 8, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
		if top, _ := mark.Highest("a"); top != 6 {
			t.Errorf("an ended context has moved the mark to %d", top)
		}
		mark.Forget("a") // Forget must not admit a second run while the first run is in progress
		close(let)
		if err := <-done; err != nil || !second {
			t.Errorf("6 after 5 has returned: %v, ran: %v", err, second)
		}
	})
}

func TestDoGivesUpWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mark fence.Mark
		let := make(chan bool)
		go mark.Do(t.Context(), "a", 5, func(context.Context) error { <-let; return nil })
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- mark.Do(ctx, "a", 6, nil) }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := mark.Check("a", 5); !errors.Is(err, fence.ErrStale) {
			t.Errorf("the mark is back: %v", err)
		}
		close(let)
	})
}

func TestDoRunsOneTokenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mark fence.Mark
		first, second := make(chan bool), make(chan bool)
		go mark.Do(t.Context(), "a", 5, func(context.Context) error { close(first); <-second; return nil })
		<-first
		if err := mark.Do(t.Context(), "a", 5, func(context.Context) error { close(second); return nil }); err != nil {
			t.Error(err)
		}
	})
}

// The context of a function ends with its run, so that the caller's context keeps nothing of it.
func TestTheContextOfARunEndsWithIt(t *testing.T) {
	var mark fence.Mark
	var kept context.Context
	if err := mark.Do(t.Context(), "a", 5, func(ctx context.Context) error { kept = ctx; return ctx.Err() }); err != nil {
		t.Error(err)
	}
	if kept.Err() == nil {
		t.Error("the context goes on")
	}
}

func TestDoSurvivesAPanic(t *testing.T) {
	var mark fence.Mark
	func() {
		defer func() { recover() }()
		mark.Do(t.Context(), "a", 5, func(context.Context) error { panic("fn") })
	}()
	if err := mark.Do(t.Context(), "a", 6, func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
}

// TestAMarkInUseIsNotForgotten has marks around every small limit in use by runs, and makes room
// several times. Each of these marks remains, refuses lower tokens, and knows its runs.
func TestAMarkInUseIsNotForgotten(t *testing.T) {
	for limit := 1; limit <= 5; limit++ {
		for used := 0; used <= limit+1; used++ {
			synctest.Test(t, func(t *testing.T) {
				mark, ended := &fence.Mark{Limit: limit}, make(chan error, used)
				name := func(i int) string { return fmt.Sprint("used ", i) }
				for i := range used {
					go func() {
						ended <- mark.Do(t.Context(), name(i), mortise.Token(10+i), func(ctx context.Context) error {
							<-ctx.Done()
							return context.Cause(ctx)
						})
					}()
				}
				synctest.Wait()
				for i := range 3*limit + 1 {
					if err := mark.Advance(t.Context(), fmt.Sprint("new ", i), mortise.Token(1000+i)); err != nil {
						t.Errorf("limit %d, %d used: %v", limit, used, err)
					}
				}
				for i := range used {
					token := mortise.Token(10 + i)
					if got, ok := mark.Highest(name(i)); !ok || got != token {
						t.Errorf("limit %d, %d used: the mark in use is %d, %v", limit, used, got, ok)
					}
					if err := mark.Advance(t.Context(), name(i), token-1); !errors.Is(err, fence.ErrStale) {
						t.Errorf("limit %d, %d used: a lower token: %v", limit, used, err)
					}
					after := false
					if err := mark.Do(t.Context(), name(i), token+1, func(context.Context) error {
						after = len(ended) > 0
						return nil
					}); err != nil || !after {
						t.Errorf("limit %d, %d used: a run of a higher token: %v, after the earlier run: %v", limit, used, err,
							after)
					}
					if err := <-ended; !errors.Is(err, fence.ErrStale) {
						t.Errorf("limit %d, %d used: the earlier run has ended by %v", limit, used, err)
					}
				}
			})
		}
	}
}

// TestWhatAStaleTokenIsTold checks each field of the error, for a token below one that was seen and
// below the floor.
func TestWhatAStaleTokenIsTold(t *testing.T) {
	seen := &fence.Mark{}
	if err := seen.Advance(t.Context(), "r", 8); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		mark *fence.Mark
		want fence.StaleError
	}{
		{seen, fence.StaleError{Resource: "r", Token: 5, Highest: 8}},
		{&fence.Mark{Floor: 9}, fence.StaleError{Resource: "r", Token: 5, Highest: 9, Forgotten: true}},
	} {
		for name, err := range map[string]error{"Check": row.mark.Check("r", 5),
			"Advance": row.mark.Advance(t.Context(), "r", 5)} {
			var stale *fence.StaleError
			if !errors.As(err, &stale) || *stale != row.want {
				t.Errorf("%s: %+v, want %+v", name, err, row.want)
			}
		}
		if err := row.mark.Check("r", row.want.Highest); err != nil {
			t.Errorf("the highest token: %v", err)
		}
	}
}

// A resource that was dropped by Forget takes no place, so the Mark forgets no other for it.
func TestForgetMakesRoom(t *testing.T) {
	for limit := 1; limit <= 6; limit++ {
		mark := &fence.Mark{Limit: limit}
		advance := func(name string, token mortise.Token) {
			if err := mark.Advance(t.Context(), name, token); err != nil {
				t.Fatalf("limit %d: %v", limit, err)
			}
		}
		for i := range 3 * limit {
			advance("dropped", mortise.Token(1+i))
			mark.Forget("dropped")
			mark.Forget("never seen")
			for _, inside := range []bool{true, false} {
				name := fmt.Sprint("dropped in or after a run ", inside, i)
				if err := mark.Do(t.Context(), name, 1, func(context.Context) error {
					if inside {
						mark.Forget(name)
					}
					return nil
				}); err != nil {
					t.Fatalf("limit %d: %v", limit, err)
				}
				mark.Forget(name)
			}
		}
		for i := range limit {
			advance(fmt.Sprint(i), mortise.Token(100+i))
		}
		for i := range limit {
			if top, ok := mark.Highest(fmt.Sprint(i)); !ok || top != mortise.Token(100+i) {
				t.Errorf("limit %d: resource %d is at %d, %v", limit, i, top, ok)
			}
		}
		if err := mark.Check("another", 1); err != nil { // the floor has not risen
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}
