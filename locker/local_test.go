package locker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func nothing(context.Context, Token) error { return nil }

// holdUntil runs Do in the background, and holds the lock until free is called. free returns the
// result of Do.
func holdUntil(t *testing.T, l Locker, key string) (free func() error) {
	t.Helper()
	release, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- l.Do(context.Background(), key, func(context.Context, Token) error { <-release; return nil })
	}()
	synctest.Wait()
	return func() error { close(release); return <-done }
}

func (l *Local) names() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.keys)
}

func TestLocalServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Local
		free := holdUntil(t, &l, "k")
		var order []int
		for i := range 100 {
			go l.Do(t.Context(), "k", func(context.Context, Token) error {
				order = append(order,
					i)
				return nil
			})
			synctest.Wait()
		}
		if err := free(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for i, who := range order {
			if who != i {
				t.Fatalf("served in the order %v", order)
			}
		}
		if len(order) != 100 || l.names() != 0 {
			t.Errorf("%d of 100 were served, %d names are left", len(order), l.names())
		}
	})
}

// A waiter is granted the lock just before its context ends. Its function must not run, and the
// next waiter gets the lock.
func TestLocalHandOverCrossesCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Local
		token, err := l.lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp, served := make(chan error, 1), make(chan Token, 1)
		go func() {
			gaveUp <- l.Do(ctx, "k", func(context.Context,
				Token) error {
				t.Error("ran after its context had ended")
				return nil
			})
		}()
		synctest.Wait()
		go l.Do(t.Context(), "k", func(_ context.Context, token Token) error { served <- token; return nil })
		synctest.Wait()

		l.mu.Lock() // the grant and the cancel happen before the waiter can run
		l.pass("k")
		cancel()
		l.mu.Unlock()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `lock "k"`) ||
			!strings.Contains(err.Error(), "it was held and 0 were waiting") {
			t.Errorf("gave up with %v", err)
		}
		if next := <-served; next <= token {
			t.Errorf("token %d comes after %d", next, token)
		}
		synctest.Wait()
		if l.names() != 0 {
			t.Errorf("%d names are left", l.names())
		}
	})
}

// In this test, many contexts end at the moment of a grant. Callers exclude each other, tokens
// rise, every caller with enough time gets the lock, and no key is left in memory.
func TestLocalUnderChance(t *testing.T) {
	crossed := 0
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 0))
			var l Local
			var all sync.WaitGroup
			inside, last, served, gaveUp := [2]int{}, [2]Token{}, 0, 0
			var mu sync.Mutex
			for range 40 {
				arrive, patience, stay := time.Duration(chance.IntN(20))*time.Millisecond,
					time.Duration(chance.IntN(15))*time.Millisecond, time.Duration(chance.IntN(3))*time.Millisecond
				key := chance.IntN(2)
				all.Go(func() {
					time.Sleep(arrive)
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					began := time.Now()
					err := l.Do(ctx, fmt.Sprint(key), func(_ context.Context, token Token) error {
						mu.Lock()
						defer mu.Unlock()
						inside[key]++
						if inside[key] != 1 || token <= last[key] {
							t.Errorf("seed %d: %d inside, token %d after %d", seed, inside[key], token, last[key])
						}
						last[key] = token
						mu.Unlock()
						time.Sleep(stay)
						mu.Lock()
						inside[key]--
						served++
						return nil
					})
					mu.Lock()
					defer mu.Unlock()
					switch {
					case errors.Is(err, context.DeadlineExceeded) && time.Since(began) == patience:
						gaveUp++
					case err != nil:
						t.Errorf("seed %d: %v after %v of %v", seed, err, time.Since(began), patience)
					}
				})
			}
			all.Wait()
			if served+gaveUp != 40 || l.names() != 0 {
				t.Errorf("seed %d: %d served, %d gave up of 40, %d names are left", seed, served, gaveUp, l.names())
			}
			crossed += gaveUp
		})
	}
	if crossed < 1000 {
		t.Errorf("only %d callers gave up: the test does not see what it is for", crossed)
	}
}

func TestLocalGivingUpLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Local
		free := holdUntil(t, &l, "k")
		ctx, cancel := context.WithCancel(t.Context())
		for range 1000 {
			go l.Do(ctx, "k", nothing)
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if n := l.keys["k"].Len(); n != 0 {
			t.Errorf("%d waiters that gave up still stand in the queue", n)
		}
		if err := free(); err != nil || l.names() != 0 {
			t.Errorf("%v, %d names are left", err, l.names())
		}
	})
}

func TestLocalIsEnteredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l, other Local
		var kept context.Context
		leave, left := make(chan struct{}), make(chan error, 1)
		err := l.Do(t.Context(), "k", func(ctx context.Context, outer Token) error {
			kept = ctx
			return other.Do(ctx, "k", func(ctx context.Context, _ Token) error {
				return l.Do(ctx, "between", func(ctx context.Context, _ Token) error {
					go func() {
						left <- l.Do(ctx, "k", func(_ context.Context, token Token) error {
							if token != outer {
								t.Errorf("entered again with the token %d, not %d", token, outer)
							}
							<-leave
							return nil
						})
					}()
					synctest.Wait()
					return nil
				})
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Do(short, "k", nothing); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("another caller while one is still inside: %v", err)
		}
		close(leave)
		if err := <-left; err != nil || l.names()+other.names() != 0 {
			t.Errorf("%v, %d names are left", err, l.names()+other.names())
		}

		free := holdUntil(t, &l, "k")
		short, cancel = context.WithTimeout(context.WithoutCancel(kept), time.Second)
		defer cancel()
		if err := l.Do(short, "k", nothing); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with the context of a hold that is over: %v", err)
		}
		if err := free(); err != nil {
			t.Error(err)
		}
	})
}

func TestLocalEnds(t *testing.T) {
	var l Local
	var kept context.Context
	if err := l.Do(t.Context(), "k",
		func(ctx context.Context, _ Token) error { kept = ctx; return ctx.Err() }); err != nil {
		t.Fatal(err)
	}
	if cause := context.Cause(kept); !errors.Is(cause, ErrUnlocked) {
		t.Errorf("after the unlock the context's cause is %v", cause)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.Do(context.Background(), "k", func(context.Context, Token) error { runtime.Goexit(); return nil })
	}()
	<-done
	if l.names() != 0 {
		t.Error("a goroutine that ended keeps its lock")
	}
}
