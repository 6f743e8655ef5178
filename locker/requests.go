package locker

import (
	"context"
	"errors"
	"strings"

	"github.com/mortise-lock/mortise"
)

// Acquirer acquires locks. *mortise.Node and *mortise.Session implement it.
type Acquirer interface {
	Acquire(ctx context.Context, r mortise.Request) (*mortise.Lock, error)
}

// Requests is a Locker that makes a Request of its own for each call: for a shared lock, for
// permits of a semaphore, for a lock that must be free, or for several keys. Every wrapper of this
// package can use it.
//
// Calls with Shared or Permits may run fn at the same time, and their tokens do not fence a
// resource, see [mortise.Request]. A Local as Fallback of a Breaker runs them one after another.
type Requests struct {
	by      Acquirer
	request func(key string) mortise.Request
}

// NewRequests returns a Requests that passes the result of request to by. If request sets no
// Key, Keys or Path, the Key is that of the call. Several goroutines may call request concurrently.
func NewRequests(by Acquirer, request func(key string) mortise.Request) (*Requests, error) {
	var wrong mistakes
	if by == nil {
		wrong.add("by", "is missing")
	}
	if request == nil {
		wrong.add("request", "is missing")
	}
	if err := wrong.err(); err != nil {
		return nil, err
	}
	return &Requests{by, request}, nil
}

// Do acquires the lock that the request describes, runs fn and unlocks, even if fn panics. The
// error is like that of [mortise.Node.Do]. It is a *mortise.HeldError if the request has Try and
// the lock is not free.
func (r *Requests) Do(ctx context.Context, key string,
	fn func(ctx context.Context, token mortise.Token) error) (err error) {
	if r.by == nil {
		return unmade("Requests")
	}
	if err := checkKey(key); err != nil {
		return err
	}
	request := r.request(key)
	if request.Key == "" && len(request.Keys) == 0 && request.Path == "" {
		request.Key = key
	}
	lock, err := r.by.Acquire(ctx, request)
	if err != nil {
		return err
	}
	defer func() {
		unlocked := lock.Unlock(ctx)
		if unlocked == nil || err == nil || !strings.Contains(err.Error(), unlocked.Error()) { // report a loss once
			err = errors.Join(err, unlocked)
		}
	}()
	return fn(lock.Context(ctx), lock.Token())
}
