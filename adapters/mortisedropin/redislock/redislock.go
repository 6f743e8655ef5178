package redislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisedropin/internal/hold"
	"github.com/mortise-lock/mortise/locker"
)

var (
	// ErrNotObtained means that another holder has the lock. After Refresh it means that the lock
	// has ended.
	ErrNotObtained = errors.New("redislock: not obtained")

	// ErrLockNotHeld means that the lock had ended before Release.
	ErrLockNotHeld = errors.New("redislock: the lock is not held")
)

// Acquirer is where the locks come from: a *mortise.Node, or a *mortise.Session with its own TTL.
type Acquirer = locker.Acquirer[mortise.Request, *mortise.Lock]

// Client obtains locks. Set Failed before the first call.
type Client struct {
	// Failed is called with the reason of each ErrNotObtained and each error of a context that Obtain
	// returns, such as a *mortise.HeldError, which names the holder. Obtain returns these errors as
	// they are, for code that compares with ==. Nil means that the reasons are dropped.
	Failed func(key string, err error)

	by Acquirer
}

// New returns a Client for the locks of a node's group.
func New(by Acquirer) *Client { return &Client{by: by} }

// Options are the options of Obtain. Nil means the zero value.
type Options struct {
	RetryStrategy RetryStrategy // nil means NoRetry
	Metadata      string        // a text that other instances see as the value of the holder
	Token         string        // must be empty: the group gives the token
}

// Obtain is New(by).Obtain.
func Obtain(ctx context.Context, by Acquirer, key string, ttl time.Duration, o *Options) (*Lock, error) {
	return New(by).Obtain(ctx, key, ttl, o)
}

// Obtain takes the lock of key for at most ttl, which must be positive. If another holder has the
// lock, it waits for as long as the strategy allows, and returns ErrNotObtained. If ctx ends during
// the wait, the error is that of ctx.
func (c *Client) Obtain(ctx context.Context, key string, ttl time.Duration, o *Options) (*Lock, error) {
	if o == nil {
		o = &Options{}
	}
	if o.Token != "" {
		return nil, fmt.Errorf("%w: redislock: Options.Token must be empty: the group gives the token", mortise.ErrBadRequest)
	}
	if ttl <= 0 {
		return nil, fmt.Errorf("%w: redislock: the TTL is %v; want more than 0", mortise.ErrBadRequest, ttl)
	}
	strategy := o.RetryStrategy
	if strategy == nil {
		strategy = NoRetry()
	}
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, ttl)
		defer cancel()
	}
	lock, err := hold.Acquire(ctx, c.by, mortise.Request{Key: key, Value: o.Metadata}, strategy.NextBackoff)
	switch {
	case err == nil:
		return &Lock{hold: hold.New(lock, ttl), metadata: o.Metadata}, nil
	case errors.Is(err, mortise.ErrHeld) || errors.Is(err, hold.ErrWaited):
		return nil, c.fails(key, ErrNotObtained, err)
	case ctx.Err() != nil:
		return nil, c.fails(key, ctx.Err(), err)
	}
	return nil, fmt.Errorf("redislock: %w", err)
}

// fails reports the cause, and returns the error that code for redislock expects.
func (c *Client) fails(key string, sentinel, cause error) error {
	if c.Failed == nil {
		return sentinel
	}
	if errors.Is(cause, sentinel) {
		c.Failed(key, fmt.Errorf("redislock: %w", cause))
	} else {
		c.Failed(key, fmt.Errorf("%w: %w", sentinel, cause))
	}
	return sentinel
}

// Lock is a lock that was obtained.
type Lock struct {
	hold     *hold.Hold
	metadata string
}

// Key returns the key.
func (l *Lock) Key() string { return l.hold.Lock().Key() }

// Token returns the fencing token as a decimal number.
func (l *Lock) Token() string { return strconv.FormatUint(uint64(l.Fence()), 10) }

// Metadata returns Options.Metadata.
func (l *Lock) Metadata() string { return l.metadata }

// TTL returns the rest of the TTL, or 0 if the lock has ended. Its error is always nil.
func (l *Lock) TTL(context.Context) (time.Duration, error) {
	until, _ := l.hold.Until()
	if l.hold.Err() != nil {
		return 0, nil
	}
	return max(time.Until(until), 0), nil
}

// Refresh makes a new TTL begin, which must be positive. It returns ErrNotObtained if the lock has
// ended, and Err then has the reason. The options have no effect.
func (l *Lock) Refresh(_ context.Context, ttl time.Duration, _ *Options) error {
	if ttl <= 0 {
		return fmt.Errorf("%w: redislock: the TTL is %v; want more than 0", mortise.ErrBadRequest, ttl)
	}
	err := l.hold.Extend(ttl)
	switch {
	case err == nil:
		return nil
	case hold.Ended(err):
		return ErrNotObtained
	}
	return fmt.Errorf("redislock: refresh %q: %w", l.Key(), err)
}

// Err returns nil while the lock is held, and otherwise the reason why it has ended, such as
// mortise.ErrLost.
func (l *Lock) Err() error {
	if err := l.hold.Err(); err != nil {
		return fmt.Errorf("redislock: the lock of %q has ended: %w", l.Key(), err)
	}
	return nil
}

// Release ends the lock, even if ctx has ended. It returns ErrLockNotHeld if the lock had ended
// before, and Err then has the reason. A nil Lock is not held.
func (l *Lock) Release(ctx context.Context) error {
	if l == nil {
		return ErrLockNotHeld
	}
	err := l.hold.Release(ctx)
	switch {
	case err == nil:
		return nil
	case hold.Ended(err):
		return ErrLockNotHeld
	}
	return fmt.Errorf("redislock: %w", err)
}

// Fence returns the fencing token. A resource that refuses lower tokens is safe from a holder that
// has lost its lock: see package fence of mortise.
func (l *Lock) Fence() mortise.Token { return l.hold.Lock().Token() }

// Context returns a child of parent that ends when the lock ends. Work under the lock should use
// it.
func (l *Lock) Context(parent context.Context) context.Context { return l.hold.Lock().Context(parent) }
