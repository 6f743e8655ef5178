// Package fencetest tests implementations of [fence.Store] and [fence.Section].
//
// The tests offer tokens one by one, and from many goroutines concurrently. A store that passes
// has refused every token that was offered after a higher one. The cases run one after the other,
// and all goroutines have ended when Run returns. Run uses about a dozen resources whose names
// begin with "fencetest/" and the name of the test, and does not remove their marks.
package fencetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

// Run tests store in subtests of t. store must not contain resources whose names begin with
// "fencetest/".
func Run(t *testing.T, store fence.Store) {
	t.Run("Lower tokens are refused", func(t *testing.T) { refusesLower(t, store) })
	t.Run("Resources are kept apart", func(t *testing.T) { apart(t, store) })
	t.Run("What is no token or resource is refused", func(t *testing.T) { refusesNonsense(t, store) })
	t.Run("The mark never goes back", func(t *testing.T) { neverBack(t, store) })
	if section, ok := store.(fence.Section); ok {
		t.Run("Sections of different tokens do not overlap", func(t *testing.T) { noOverlap(t, section) })
	}
}

func refusesLower(t *testing.T, store fence.Store) {
	resource := "fencetest/" + t.Name()
	highest := mortise.Token(0)
	for _, token := range []mortise.Token{5, 5, 4, 6, 5, 1, 1 << 62, 6, 1<<63 - 1, 1<<63 - 2, 1<<63 - 1} {
		err := store.Advance(t.Context(), resource, token)
		if token >= highest {
			highest = token
			if err != nil {
				t.Errorf("token %d is not lower than %d and was refused: %v", token, highest, err)
			}
			continue
		}
		var stale *fence.StaleError
		if !errors.As(err, &stale) || !errors.Is(err, fence.ErrStale) {
			t.Errorf("token %d after %d: %v, want a *StaleError", token, highest, err)
		} else if stale.Resource != resource || stale.Token != token || stale.Highest != highest {
			t.Errorf("token %d after %d of %q: the refusal says %+v", token, highest, resource, *stale)
		}
	}
}

func apart(t *testing.T, store fence.Store) {
	base := "fencetest/" + t.Name() + "/a"
	names := []string{base, base + "/../a", base + " ", strings.ToUpper(base), base + "%", base + "_", base +
		"ä", base + "a\u0308", base + "'\"`;--", base + strings.Repeat("x", 512-len(base))}
	for i, name := range names { // a mark shared with an earlier name would refuse the lower token
		if err := store.Advance(t.Context(), name, mortise.Token(len(names)-i)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func refusesNonsense(t *testing.T, store fence.Store) {
	for _, token := range []mortise.Token{0, 1 << 63, 1<<64 - 1} {
		if err := store.Advance(t.Context(), "fencetest/"+t.Name(), token); !errors.Is(err, fence.ErrBadToken) {
			t.Errorf("token %d: %v, want ErrBadToken", uint64(token), err)
		}
	}
	for _, resource := range []string{"", "a\x00b", "a\nb", "\xff", strings.Repeat("x", 513)} {
		if err := store.Advance(t.Context(), resource, 1); !errors.Is(err, fence.ErrBadResource) {
			t.Errorf("resource %.20q: %v, want ErrBadResource", resource, err)
		}
	}
}

// The concurrent cases make only a few hundred calls, so that slow stores can be tested too.
const (
	writers = 8
	rounds  = 25
)

func neverBack(t *testing.T, store fence.Store) {
	resource := "fencetest/" + t.Name()
	var done, top atomic.Uint64 // the highest admitted token; the highest offered token
	each(func(writer int, chance *rand.Rand) {
		for range rounds {
			token := 1 + chance.Uint64N(writers*rounds)
			raise(&top, token)
			dawdle(chance)
			before := done.Load()
			err := store.Advance(t.Context(), resource, mortise.Token(token))
			switch {
			case err == nil && token < before:
				t.Errorf("token %d was admitted after %d", token, before)
			case err == nil:
				raise(&done, token)
			case !errors.Is(err, fence.ErrStale):
				t.Errorf("token %d: %v", token, err)
			}
		}
	})
	if err := store.Advance(t.Context(), resource, mortise.Token(top.Load())); err != nil {
		t.Errorf("the highest token, %d, is refused: %v", top.Load(), err)
	}
	var stale *fence.StaleError
	if err := store.Advance(t.Context(), resource, mortise.Token(top.Load()-1)); !errors.As(err, &stale) ||
		stale.Highest != mortise.Token(top.Load()) {
		t.Errorf("below the highest token, %d: %v", top.Load(), err)
	}
}

func noOverlap(t *testing.T, section fence.Section) {
	resource := "fencetest/" + t.Name()
	var register atomic.Uint64 // atomic, because the lock of a database or a file does not order memory accesses
	var ran atomic.Int64
	each(func(writer int, chance *rand.Rand) {
		for round := range rounds {
			token := uint64(1 + round*writers + writer)
			err := section.Do(t.Context(), resource, mortise.Token(token), func(context.Context) error {
				if before := register.Load(); before > token {
					t.Errorf("the section with token %d runs after the section with token %d", token, before)
				}
				dawdle(chance)
				if before := register.Swap(token); before > token {
					t.Errorf("the section with token %d still runs after the section with token %d", token, before)
				}
				ran.Add(1)
				return nil
			})
			if err != nil && !errors.Is(err, fence.ErrStale) {
				t.Errorf("token %d: %v", token, err)
			}
		}
	})
	if got := register.Load(); got != writers*rounds {
		t.Errorf("the register ends at %d, want the highest token, %d", got, writers*rounds)
	}
	want := errors.New("of fn")
	if err := section.Do(t.Context(), resource, writers*rounds,
		func(context.Context) error { return want }); !errors.Is(err, want) {
		t.Errorf("Do returned %v, want the error of fn", err)
	}
	t.Logf("%d of %d sections ran, the others were refused", ran.Load(), writers*rounds)
}

func each(work func(writer int, chance *rand.Rand)) {
	var all sync.WaitGroup
	for writer := range writers {
		all.Go(func() { work(writer, rand.New(rand.NewPCG(uint64(writer), 1))) })
	}
	all.Wait()
}

func dawdle(chance *rand.Rand) {
	for range chance.IntN(4) {
		runtime.Gosched()
	}
}

func raise(n *atomic.Uint64, to uint64) {
	for {
		old := n.Load()
		if old >= to || n.CompareAndSwap(old, to) {
			return
		}
	}
}
