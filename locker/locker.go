package locker

import "context"

// Locker runs work under a lock. *mortise.Node implements it.
//
// Do waits for the lock of key, runs fn at most once, and unlocks, even if fn panics or calls
// runtime.Goexit. The context of fn is a child of ctx. It ends when the lock is lost, if the Locker
// can lose locks, and may end when fn has returned. token is higher than the token of every earlier
// lock of that key by this Locker.
//
// When ctx ends during the wait, Do returns soon, with an error that wraps the context's error.
// If Do returns an error and fn has not run, nothing is held and nothing is granted later. If fn
// has run, the error wraps the error of fn and any error of unlocking. For a key that a Node
// would refuse, Do fails with [ErrBadKey]. In a Node and a Local, a nested call with the
// context of fn and the same key gets the lock at once. Other Lockers may block such a call
// until its context ends. Implementations are safe for concurrent use.
type Locker interface {
	Do(ctx context.Context, key string, fn func(ctx context.Context, token Token) error) error
}

var (
	_ Locker = (*Local)(nil)
	_ Locker = Func(nil)
)

// Func adapts a function to a Locker. The function must keep the contract of Locker, which package
// lockertest checks.
type Func func(ctx context.Context, key string, fn func(ctx context.Context, token Token) error) error

// Do calls f.
func (f Func) Do(ctx context.Context, key string, fn func(ctx context.Context, token Token) error) error {
	return f(ctx, key, fn)
}
