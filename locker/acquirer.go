package locker

import (
	"context"
	"errors"
	"strings"
)

// Lock is one grant of a lock. *mortise.Lock implements it. It is held until Unlock, or until it is
// lost. Implementations are safe for concurrent use.
type Lock interface {
	// Key returns the locked key.
	Key() string
	// Token returns the fencing token of this grant. It never changes.
	Token() Token
	// Context returns a child of parent that ends when the lock is lost or unlocked. Its cause
	// (context.Cause) has the reason, and TokenFrom finds the token in it.
	Context(parent context.Context) context.Context
	// Done returns a channel that is closed when the lock is no longer held.
	Done() <-chan struct{}
	// Err returns nil while the lock is held, and then ErrLost or ErrUnlocked, or an error that
	// wraps one of them.
	Err() error
	// Unlock releases the lock, even if ctx has ended. It returns ErrLost, or an error that wraps
	// it, if the lock was lost before.
	Unlock(ctx context.Context) error
}

// Acquirer acquires locks of the type L by requests of the type R. *mortise.Node and
// *mortise.Session are Acquirers of *mortise.Lock by mortise.Request. If Acquire returns an error,
// nothing is held and nothing is granted later. Implementations are safe for concurrent use.
type Acquirer[R any, L Lock] interface {
	Acquire(ctx context.Context, r R) (L, error)
}

// Requests returns a Locker for all kinds of locks: a call of Do acquires what request returns for
// its key. Several goroutines may call request concurrently.
//
//	readers := locker.Requests(node, func(key string) mortise.Request {
//		return mortise.Request{Key: key, Mode: mortise.Shared}
//	})
//
// Calls that hold a shared lock or permits run fn at the same time, and their tokens do not fence a
// resource: see mortise.Request.
func Requests[R any, L Lock](by Acquirer[R, L], request func(key string) R) Locker {
	return Func(func(ctx context.Context, key string, fn func(context.Context, Token) error) (err error) {
		lock, err := by.Acquire(ctx, request(key))
		if err != nil {
			return err
		}
		defer func() {
			unlocked := lock.Unlock(ctx)
			if unlocked == nil || err == nil || !strings.Contains(err.Error(), unlocked.Error()) { // report a loss once
				err = errors.Join(err, unlocked)
			}
		}()
		working, end := context.WithCancelCause(ctx)
		defer end(ErrUnlocked) // if the lock was entered again, Unlock does not end the context
		return fn(lock.Context(working), lock.Token())
	})
}
