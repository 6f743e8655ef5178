package flight_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/flight"
	"github.com/mortise-lock/mortise/internal/lab/fakelock"
)

// cache is shared by all instances of a test. Its value expires.
type cache struct {
	mu       sync.Mutex
	value    string
	token    mortise.Token
	computed int
	refused  int
	takes    time.Duration // the duration of a computation
}

func (c *cache) fresh(context.Context) (string, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value, c.value != "", nil
}

func (c *cache) compute(ctx context.Context, token mortise.Token) (string, error) {
	select {
	case <-time.After(c.takes):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	return c.write(token)
}

func (c *cache) write(token mortise.Token) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.computed++
	value := fmt.Sprintf("page %d", token)
	if token < c.token {
		c.refused++
		return value, nil
	}
	c.value, c.token = value, token
	return value, nil
}

func nothing(context.Context) (string, bool, error) { return "", false, nil }

type result struct {
	value    string
	err      error
	panicked any
	done     chan struct{}
}

func start(ctx context.Context, g *flight.Group[string], fresh func(context.Context) (string, bool, error),
	compute func(context.Context, mortise.Token) (string, error)) *result {
	r := &result{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		defer func() { r.panicked = recover() }()
		r.value, r.err = g.Do(ctx, "page", fresh, compute)
	}()
	synctest.Wait()
	return r
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// nothingLeft fails the test if a key is still locked when all goroutines are blocked.
func nothingLeft(t *testing.T, locks *fakelock.Locks) {
	t.Helper()
	synctest.Wait()
	if keys := locks.Keys(); len(keys) != 0 {
		t.Errorf("still taken: %q", keys)
	}
}

func TestOneRebuildServesAllCallersOfAllInstances(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var locks fakelock.Locks
		store := &cache{takes: time.Second}
		began := time.Now()
		var callers sync.WaitGroup
		for range 3 {
			g := flight.New[string](locks.Instance())
			for range 10 {
				callers.Go(func() {
					if v, err := g.Do(t.Context(), "page", store.fresh, store.compute); v != "page 1" || err != nil {
						t.Errorf("got %q, %v", v, err)
					}
				})
			}
		}
		callers.Wait()
		if store.computed != 1 || time.Since(began) != time.Second {
			t.Errorf("computed %d times in %v, want once in 1 s", store.computed, time.Since(began))
		}
		nothingLeft(t, &locks)
	})
}

func TestCallersOfOneProcessShareACall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var locks fakelock.Locks
		g := flight.New[string](locks.Instance())
		store := &cache{takes: time.Second}
		a := start(t.Context(), g, nothing, store.compute)
		b := start(t.Context(), g, nothing, store.compute)
		<-a.done
		<-b.done
		if a.value != "page 1" || b.value != "page 1" || store.computed != 1 {
			t.Errorf("got %q and %q, computed %d times", a.value, b.value, store.computed)
		}
		if c := start(t.Context(), g, nothing, store.compute); true {
			<-c.done
			if c.value != "page 2" {
				t.Errorf("a later caller got %q, want a new computation", c.value)
			}
		}
	})
}

func TestACallerThatGivesUpDoesNotEndTheCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var locks fakelock.Locks
		g := flight.New[string](locks.Instance())
		store := &cache{takes: time.Second}
		gone := errors.New("the browser was closed")
		ctx, giveUp := context.WithCancelCause(t.Context())
		first := start(ctx, g, nothing, store.compute)
		second := start(t.Context(), g, nothing, store.compute)
		giveUp(gone)
		synctest.Wait()
		select {
		case <-first.done:
		default:
			t.Fatal("the caller that gave up still waits")
		}
		if !errors.Is(first.err, gone) {
			t.Errorf("it got %v", first.err)
		}
		<-second.done
		if second.value != "page 1" || second.err != nil {
			t.Errorf("the other got %q, %v", second.value, second.err)
		}
	})
}

func TestTheLastCallerThatGivesUpEndsTheCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var locks fakelock.Locks
		g := flight.New[string](locks.Instance())
		store := &cache{takes: time.Hour}
		ctx, giveUp := context.WithCancel(t.Context())
		began := time.Now()
		compute := func(ctx context.Context, token mortise.Token) (string, error) {
			page, err := store.compute(ctx, token)
			time.Sleep(time.Second)
			return page, err
		}
		start(ctx, g, nothing, compute)
		start(ctx, g, nothing, compute)
		giveUp()
		synctest.Wait()
		// A later caller does not join the cancelled call, but waits until that call has released
		// its lock.
		next := start(t.Context(), g, nothing, func(context.Context, mortise.Token) (string, error) {
			return "page 2",
				nil
		})
		<-next.done
		if next.value != "page 2" || next.err != nil || time.Since(began) != time.Second {
			t.Errorf("the next caller got %q, %v after %v", next.value, next.err, time.Since(began))
		}
		nothingLeft(t, &locks)
	})
}

func TestACallerWhoseContextHasEndedBeginsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := flight.New[string](new(fakelock.Locks).Instance())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r := start(ctx, g, nothing, (&cache{}).compute); !errors.Is(r.err, context.Canceled) {
			t.Errorf("got %v", r.err)
		}
	})
}

// Callers must get the reason why the lock was lost, and the next instance must compute. The first
// computation ignores the end of its context and writes late; the cache must refuse its token.
func TestALostLockEndsTheComputationAndFencesIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var locks fakelock.Locks
		store := &cache{takes: time.Second}
		slow := func(ctx context.Context, token mortise.Token) (string, error) {
			time.Sleep(5 * time.Second)
			return store.write(token)
		}
		a := start(t.Context(), flight.New[string](locks.Instance()), store.fresh, slow)
		b := start(t.Context(), flight.New[string](locks.Instance()), store.fresh, store.compute)
		if !locks.Lose("page") {
			t.Fatal("the lock was not held")
		}
		<-b.done
		<-a.done
		if b.value != "page 2" || a.value != "page 1" || a.err != nil {
			t.Errorf("got %q, and from the slow one %q, %v", b.value, a.value, a.err)
		}
		if store.value != "page 2" || store.refused != 1 {
			t.Errorf("the cache has %q and refused %d writes: want that of the later token", store.value, store.refused)
		}
		c := start(t.Context(), flight.New[string](locks.Instance()), nothing, store.compute)
		locks.Lose("page")
		<-c.done
		if !errors.Is(c.err, mortise.ErrLost) {
			t.Errorf("a computation that saw the loss gave %v", c.err)
		}
	})
}

// The lock is lost during the cache read.
func TestNothingIsComputedOnALockThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var locks fakelock.Locks
		g := flight.New[string](locks.Instance())
		look := func(context.Context) (string, bool, error) {
			time.Sleep(time.Second)
			return "", false, nil
		}
		r := start(t.Context(), g, look, func(context.Context, mortise.Token) (string, error) {
			t.Error("computed")
			return "", nil
		})
		locks.Lose("page")
		<-r.done
		if !errors.Is(r.err, mortise.ErrLost) {
			t.Errorf("got %v", r.err)
		}
	})
}

func TestAPanicReachesEveryCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var locks fakelock.Locks
		g := flight.New[string](locks.Instance())
		broken := errors.New("no such template")
		fail := func(context.Context, mortise.Token) (string, error) {
			time.Sleep(time.Second)
			panic(broken)
		}
		for _, r := range []*result{start(t.Context(), g, nothing, fail), start(t.Context(), g, nothing, fail)} {
			<-r.done
			p, ok := r.panicked.(*flight.PanicError)
			if !ok || !errors.Is(p, broken) || !strings.Contains(p.Error(), "flight_test.go") {
				t.Errorf("a caller panicked with %v", r.panicked)
			}
		}
		nothingLeft(t, &locks)
	})
}

func TestAFunctionThatEndsItsGoroutineIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var locks fakelock.Locks
		g := flight.New[string](locks.Instance())
		r := start(t.Context(), g, nothing, func(context.Context, mortise.Token) (string, error) {
			runtime.Goexit()
			return "", nil
		})
		<-r.done
		if r.err == nil || r.panicked != nil {
			t.Errorf("got %v, %v", r.err, r.panicked)
		}
		nothingLeft(t, &locks)
		g.Close()
	})
}

func TestErrorsAreSharedAndNotRemembered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var locks fakelock.Locks
		g := flight.New[string](locks.Instance())
		down := errors.New("the cache is down")
		look := func(context.Context) (string, bool, error) { return "", false, down }
		store := &cache{}
		if r := start(t.Context(), g, look, store.compute); !errors.Is(r.err, down) || store.computed != 0 {
			t.Errorf("got %v, and computed %d times", r.err, store.computed)
		}
		r := start(t.Context(), g, store.fresh, store.compute)
		<-r.done
		if r.err != nil {
			t.Errorf("the next caller got %v", r.err)
		}
	})
}

func TestCloseEndsWhatRunsAndWaitsForIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var locks fakelock.Locks
		g := flight.New[string](locks.Instance())
		ended := time.Time{}
		began := time.Now()
		r := start(t.Context(), g, nothing, func(ctx context.Context, _ mortise.Token) (string, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = time.Now()
			return "", ctx.Err()
		})
		behind := start(t.Context(), flight.New[string](locks.Instance()), nothing, (&cache{}).compute)
		g.Close()
		if ended.Sub(began) != time.Second {
			t.Errorf("Close returned %v after the beginning, the function ended after %v", time.Since(began),
				ended.Sub(began))
		}
		<-r.done
		if !errors.Is(r.err, flight.ErrClosed) {
			t.Errorf("the caller got %v", r.err)
		}
		<-behind.done
		if behind.err != nil {
			t.Errorf("another instance got %v", behind.err)
		}
		if late := start(t.Context(), g, nothing, (&cache{}).compute); !errors.Is(late.err, flight.ErrClosed) {
			t.Errorf("after Close a caller got %v", late.err)
		}
		g.Close()
		nothingLeft(t, &locks)
	})
}

func TestANodeThatLeavesEndsTheCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var locks fakelock.Locks
		node := locks.Instance()
		g := flight.New[string](node)
		r := start(t.Context(), g, nothing, (&cache{takes: time.Hour}).compute)
		node.Leave()
		<-r.done
		if !errors.Is(r.err, mortise.ErrLeaving) {
			t.Errorf("got %v", r.err)
		}
		nothingLeft(t, &locks)
	})
}

type unconfirmed struct{}

func (unconfirmed) Do(ctx context.Context, _ string, fn func(context.Context, mortise.Token) error) error {
	err := fn(ctx, 1)
	<-ctx.Done()
	return errors.Join(err, ctx.Err())
}

func TestCallersDoNotWaitForTheRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := flight.New[string](unconfirmed{})
		r := start(t.Context(), g, nothing, (&cache{}).compute)
		<-r.done
		if r.value != "page 1" || r.err != nil {
			t.Errorf("got %q, %v", r.value, r.err)
		}
		g.Close() // Close must not wait for the call's goroutine either
	})
}
