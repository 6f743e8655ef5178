package locker

import (
	"context"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-lock/mortise"
)

// Locker runs work under a lock. *mortise.Node implements it.
//
// Do waits for the lock of key, runs fn at most once, and unlocks, even if fn panics. The context
// of fn is a child of ctx. It ends when the lock is lost, if the Locker can lose locks. token is
// higher than the token of every earlier lock of that key by this Locker.
//
// When ctx ends during the wait, Do returns soon, with an error that wraps the context's error.
// If Do returns an error and fn has not run, nothing is held and nothing is granted later. If fn
// has run, the error wraps the error of fn and any error of unlocking. For a key that a Node
// would refuse, Do fails with [mortise.ErrBadKey]. In a Node and a Local, a nested call with the
// context of fn and the same key gets the lock at once. Other Lockers may block such a call
// until its context ends. Implementations are safe for concurrent use.
type Locker interface {
	Do(ctx context.Context, key string, fn func(ctx context.Context, token mortise.Token) error) error
}

var (
	_ Locker = (*mortise.Node)(nil)
	_ Locker = (*Local)(nil)
	_ Locker = (*Requests)(nil)
	_ Locker = (*Retry)(nil)
	_ Locker = (*Breaker)(nil)
	_ Locker = (*Both)(nil)
	_ Locker = (*Router)(nil)
	_ Locker = (*Patience)(nil)
	_ Locker = Func(nil)
)

// Func adapts a function to a Locker. The function must keep the contract of Locker, which package
// lockertest checks.
type Func func(ctx context.Context, key string, fn func(ctx context.Context, token mortise.Token) error) error

// Do calls f.
func (f Func) Do(ctx context.Context, key string, fn func(ctx context.Context, token mortise.Token) error) error {
	return f(ctx, key, fn)
}

const maxKeyBytes = 512

func checkKey(key string) error {
	if key == "" || len(key) > maxKeyBytes || !utf8.ValidString(key) {
		return badKey(key)
	}
	for _, r := range key {
		if unicode.IsControl(r) {
			return badKey(key)
		}
	}
	return nil
}

func badKey(key string) error {
	return fmt.Errorf("%w: %.64q: want 1 to %d bytes of UTF-8 without control characters", mortise.ErrBadKey, key,
		maxKeyBytes)
}

// ended returns an error that wraps the error and the cause of ctx, which has ended.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

type mistakes []error

func (m *mistakes) add(field, format string, args ...any) {
	*m = append(*m, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
}

func (m *mistakes) need(field string, l Locker) {
	if l == nil {
		m.add(field, "is missing")
	}
}

func (m mistakes) err() error {
	if len(m) == 0 {
		return nil
	}
	return fmt.Errorf("locker: the configuration has %d mistake(s):\n%w", len(m), errors.Join(m...))
}

func unmade(kind string) error {
	return fmt.Errorf("locker: this %s was not made by New%s", kind, kind)
}
