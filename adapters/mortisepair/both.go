package mortisepair

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/locker"
)

// BothConfig configures a Both.
type BothConfig struct {
	// First is locked first and unlocked last. fn always runs under it. First is required, and must
	// be the same on all instances: see Both.
	First locker.Locker

	// Second is locked after First and unlocked before First. Required.
	Second locker.Locker

	// Authority selects the token that fn gets: FirstLock or SecondLock. The tokens of two lockers
	// cannot be compared, so change the authority only when the resource may forget its tokens.
	// Required.
	Authority Authority

	// Observe makes Second optional: if it cannot be locked, or its lock is lost, OnSecond is
	// called and the work continues under First alone. Such work does not exclude programs that use
	// only Second. Observe requires FirstLock as the Authority. In fn, [Via] reports whether Second
	// is missing.
	Observe bool

	// Wait is how long the work waits for Second if Observe is set. Default: 1s. If Observe is not
	// set, Wait must be zero, because the caller's context limits the wait.
	Wait time.Duration

	// OnSecond is called with each error of Second if Observe is set. It runs on the goroutine of
	// the call, and the call waits until OnSecond returns. Several goroutines may call it
	// concurrently. Required with Observe.
	OnSecond func(key string, err error)
}

// Authority selects which of the two locks provides the token.
type Authority int

const (
	FirstLock  Authority = iota + 1 // the token is that of First
	SecondLock                      // the token is that of Second
)

// Both is a Locker that holds the locks of two other Lockers together. Use it to move from one lock
// service to another while instances with the old and the new program run together. The calls of
// each step exclude the calls of the step before, so each step may be rolled out instance by
// instance:
//
//	old                                              all instances lock the old service
//	Both{First: old, Second: node, Observe: true}    see whether the new one is reliable
//	Both{First: old, Second: node}                   wait until this runs everywhere
//	node                                             the old service may be removed
//
// All instances must have the same First. Otherwise two calls can each hold the lock that the other
// call waits for, until a context ends. Nested calls must lock their keys in one order, as with any
// lock.
type Both struct{ config BothConfig }

// NewBoth returns a Both, or an error that names every mistake of the configuration.
func NewBoth(c BothConfig) (*Both, error) {
	var wrong mistakes
	wrong.need("First", c.First)
	wrong.need("Second", c.Second)
	if c.Authority != FirstLock && c.Authority != SecondLock {
		wrong.add("Authority", "%d is neither FirstLock nor SecondLock", c.Authority)
	}
	if c.Observe && c.Authority == SecondLock {
		wrong.add("Authority", "SecondLock cannot be combined with Observe, under which Second may give no token")
	}
	if c.Observe && c.OnSecond == nil {
		wrong.add("OnSecond", "is missing with Observe: it receives the errors of Second")
	}
	if !c.Observe && (c.OnSecond != nil || c.Wait != 0) {
		wrong.add("Observe", "is false, but OnSecond or Wait is set: without Observe, Do returns the errors of "+
			"Second, and the caller's context limits the wait")
	}
	if c.Wait < 0 {
		wrong.add("Wait", "%v is negative", c.Wait)
	}
	if err := wrong.err(); err != nil {
		return nil, err
	}
	if c.Wait == 0 {
		c.Wait = time.Second
	}
	return &Both{c}, nil
}

// Do locks First, then Second, runs fn and unlocks in reverse. The context of fn ends when either
// lock is lost, and Do returns the errors of both Lockers. With Observe, only First ends the
// context, and the errors of Second go to OnSecond.
func (b *Both) Do(ctx context.Context, key string, fn func(ctx context.Context, token locker.Token) error) error {
	if b.config.First == nil {
		return unmade("Both")
	}
	_, err := new(attempt).do(ctx, b.config.First, key, func(ctx context.Context, token locker.Token) error {
		if b.config.Observe {
			return b.observe(ctx, key, token, fn)
		}
		return b.require(ctx, key, token, fn)
	})
	return err
}

func (b *Both) require(ctx context.Context, key string, first locker.Token,
	fn func(context.Context, locker.Token) error) error {
	ways := Via(ctx)
	began, err := new(attempt).do(ctx, b.config.Second, key, func(ctx context.Context, token locker.Token) error {
		if b.config.Authority == FirstLock {
			token = first
		}
		return fn(locker.ContextWithToken(via(ctx, ways...), token), token)
	})
	if !began {
		return fmt.Errorf("mortisepair: the first lock was held, the second failed: %w", err)
	}
	return err
}

// observe is called under First, with its context and token. It locks Second if it can, and then
// runs fn. It does not pass the error of fn to Second, so an error from Second is never the
// error of fn.
func (b *Both) observe(ctx context.Context, key string, token locker.Token,
	fn func(context.Context, locker.Token) error) error {
	result := errors.New("mortisepair: Second returned before the function did")
	a := attempt{wait: b.config.Wait}
	began, err := a.do(ctx, b.config.Second, key, func(context.Context, locker.Token) error {
		result = fn(ctx, token)
		return nil
	})
	if !began && ctx.Err() != nil {
		return fmt.Errorf("mortisepair: lock %q: the first lock was held, and waiting for the second ended: %w", key,
			ended(ctx))
	}
	if err != nil {
		b.config.OnSecond(key, err)
	}
	if began {
		return result
	}
	return fn(via(ctx, FirstOnly), token)
}
