package lockertest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mortise-lock/mortise/locker"
)

type heard struct {
	testing.TB
	failed atomic.Bool
}

func (h *heard) Helper()               {}
func (h *heard) Error(...any)          { h.failed.Store(true) }
func (h *heard) Errorf(string, ...any) { h.failed.Store(true) }

type work = func(context.Context, locker.Token) error

func TestChecksCatch(t *testing.T) {
	for name, c := range map[string]struct {
		fresh func() locker.Locker
		want  []string // the checks that must fail
	}{
		"none": {func() locker.Locker { return new(locker.Local) }, nil},
		"runs twice": {func() locker.Locker {
			return around(func(l *locker.Local, ctx context.Context, key string, fn work) error {
				return l.Do(ctx, key, func(ctx context.Context, token locker.Token) error {
					return errors.Join(fn(ctx, token), fn(ctx, token))
				})
			})
		}, []string{"RunsOnce"}},
		"loses the error": {func() locker.Locker {
			return around(func(l *locker.Local, ctx context.Context, key string, fn work) error {
				return l.Do(ctx, key, func(ctx context.Context, token locker.Token) error {
					_ = fn(ctx,
						token)
					return nil
				})
			})
		}, []string{"RunsOnce"}},
		"one lock for all keys": {func() locker.Locker {
			return around(func(l *locker.Local, ctx context.Context, key string, fn work) error {
				return l.Do(ctx, "all", fn)
			})
		}, []string{"KeysAreApart", "BadKeys"}},
		"the same token": {func() locker.Locker {
			return around(func(l *locker.Local, ctx context.Context, key string, fn work) error {
				return l.Do(ctx, key, func(ctx context.Context,
					_ locker.Token) error {
					return fn(locker.ContextWithToken(ctx, 1), 1)
				})
			})
		}, []string{"TokensRise"}},
		"no token in the context": {func() locker.Locker {
			return around(func(l *locker.Local, ctx context.Context, key string, fn work) error {
				return l.Do(ctx, key, func(ctx context.Context, token locker.Token) error {
					return fn(locker.ContextWithToken(ctx, 0), token)
				})
			})
		}, []string{"TokensRise"}},
		"a context of its own": {func() locker.Locker {
			return around(func(l *locker.Local, ctx context.Context, key string, fn work) error {
				return l.Do(ctx, key, func(_ context.Context,
					token locker.Token) error {
					return fn(context.Background(), token)
				})
			})
		}, []string{"ContextIsChild"}},
		"no patience with contexts, and no lock": {func() locker.Locker {
			return around(func(_ *locker.Local, ctx context.Context, key string, fn work) error { return fn(ctx, 1) })
		}, []string{"EndedContext", "GivesUp", "BadKeys"}},
		"runs fn on another goroutine": {func() locker.Locker {
			return around(func(l *locker.Local, ctx context.Context, key string, fn work) error {
				return l.Do(ctx, key, func(ctx context.Context, token locker.Token) error {
					result, thrown := make(chan error, 1), make(chan any, 1)
					go func() {
						defer func() {
							if r := recover(); r != nil {
								thrown <- r
							}
						}()
						result <- fn(ctx, token)
					}()
					select {
					case err := <-result:
						return err
					case r := <-thrown:
						panic(r)
					case <-ctx.Done():
						return ctx.Err()
					}
				})
			})
		}, []string{"Goexit"}},
		"keeps the lock after a panic": {func() locker.Locker {
			return around(func(l *locker.Local, ctx context.Context, key string, fn work) error {
				var thrown any
				defer func() {
					if thrown != nil {
						go l.Do(context.Background(), key,
							func(context.Context, locker.Token) error { <-ctx.Done(); return nil })
						synctest.Wait()
						panic(thrown)
					}
				}()
				return l.Do(ctx, key, func(ctx context.Context, token locker.Token) error {
					defer func() { thrown = recover() }()
					return fn(ctx, token)
				})
			})
		}, []string{"Panic"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, check := range checks() {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), 10e9)
					defer cancel()
					h := &heard{TB: t}
					// Without a lock, the check Excludes would be a data race, so -race would fail
					// this test.
					if name != "no patience with contexts, and no lock" || check.name != "Excludes" {
						check.check(h, ctx, c.fresh())
					}
					if want := slices.Contains(c.want, check.name); want && !h.failed.Load() {
						t.Errorf("%s does not see it", check.name)
					} else if c.want == nil && h.failed.Load() {
						t.Errorf("%s complains of nothing", check.name)
					}
				})
			}
		})
	}
}

func around(fault func(l *locker.Local, ctx context.Context, key string, fn work) error) locker.Locker {
	l := new(locker.Local)
	return locker.Func(func(ctx context.Context, key string, fn func(context.Context, locker.Token) error) error {
		return fault(l, ctx, key, fn)
	})
}
