package locker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

// ErrOpen means that a Breaker without a Fallback is open: the Locker was not called, fn did not
// run, and nothing is held.
var ErrOpen = errors.New("locker: the breaker is open")

// BreakerConfig configures a Breaker.
type BreakerConfig struct {
	Locker Locker

	// Wait is how long fn may take to begin; longer is a failure, [ErrWait]. It does not bound fn
	// itself. Required, because no default fits: a lock that is held for long looks like a locker that
	// is down. Set it well above the longest wait in a healthy queue, and below the deadlines of the
	// callers: a caller that gives up earlier does not count.
	Wait time.Duration

	// Failures is how many calls in a row must fail to open the breaker: 1 to 1,000,000. Default: 5.
	Failures int

	// Pause is how long it stays open before one call is let through as a probe. Default: 10s.
	Pause time.Duration

	// Fallback is called while the breaker is open. It gives up the guarantee of Locker: holders of
	// the two do not exclude each other. While it is in use, and until the last holder of each side
	// has ended, two calls may work under one key: on two instances that each fall back to a Local; on
	// an instance that falls back and one that still reaches the Locker; and in this process, before
	// and after the change. That can happen even if the Locker works, when a lock is held for longer
	// than Wait.
	//
	// Use a Fallback where a lock saves work, and never alone where it protects data: there fence with
	// tokens. The tokens of a Local are below every node's, so the resource refuses its holders. [Via]
	// tells fn which Locker holds its lock. Default: none, calls fail with ErrOpen.
	Fallback Locker

	// OnChange is called with every change of the state, on the goroutine of the call that caused it,
	// which waits for its return. Several goroutines may call it at once; Number orders the changes.
	// Default: none.
	OnChange func(Change)
}

// Breaker is a Locker that stops calling a failing one. It only counts whether fn begins:
//
//   - success: fn has begun. Its error, a panic and the loss of the lock do not count against the
//     Locker.
//   - failure: fn has not begun within Wait, or the Locker returned an error or panicked.
//   - neither: ctx ended; or a working Locker refused this call (see [Temporary], except
//     ErrNotReady); or the error is mortise.ErrBadKey, ErrBadRequest, *DeadlockError, ErrLeaving or
//     ErrClosed. A fallback must not undo the last two, which come from the program itself.
//
// After Failures failures in a row it opens. Then calls go to the Fallback, or fail with ErrOpen.
// After Pause one call is let through as the probe: success closes the breaker, failure opens it
// for another pause. A call that fails while the breaker is open, or that opens it, goes to the
// Fallback as well. It is safe for concurrent use.
type Breaker struct {
	config  BreakerConfig
	mu      sync.Mutex
	circuit circuit
}

// NewBreaker returns a closed Breaker, or an error that names every mistake of the configuration.
func NewBreaker(c BreakerConfig) (*Breaker, error) {
	if c.Failures == 0 {
		c.Failures = 5
	}
	if c.Pause == 0 {
		c.Pause = 10 * time.Second
	}
	var wrong mistakes
	wrong.need("Locker", c.Locker)
	if c.Wait <= 0 {
		wrong.add("Wait", "%v is not above 0: set how long a lock may take, longer than the longest wait in a healthy "+
			"queue", c.Wait)
	}
	if c.Failures < 1 || c.Failures > 1_000_000 {
		wrong.add("Failures", "%d is not between 1 and 1000000", c.Failures)
	}
	if c.Pause < 0 {
		wrong.add("Pause", "%v is negative", c.Pause)
	}
	if err := wrong.err(); err != nil {
		return nil, err
	}
	return &Breaker{config: c, circuit: circuit{failures: c.Failures, pause: c.Pause}}, nil
}

// State becomes HalfOpen only when a call arrives.
func (b *Breaker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.circuit.state
}

// Do calls the Locker or the Fallback, depending on the state. It returns the result of that call,
// ErrWait or ErrOpen.
func (b *Breaker) Do(ctx context.Context, key string, fn func(ctx context.Context, token mortise.Token) error) error {
	if b.config.Locker == nil {
		return unmade("Breaker")
	}
	turn, ok := b.enter()
	if !ok {
		return b.fallBack(ctx, key, fmt.Errorf("%w (lock %q)", ErrOpen, key), fn)
	}
	began, err := b.try(ctx, key, turn, fn)
	if began || ctx.Err() != nil || harmless(err) || b.State() == Closed {
		return err
	}
	return b.fallBack(ctx, key, err, fn)
}

func (b *Breaker) try(ctx context.Context, key string, turn uint64,
	fn func(context.Context, mortise.Token) error) (began bool, err error) {
	verdict, cause := failure, errors.New("locker: the Locker panicked")
	defer func() { b.report(turn, verdict, cause) }()
	a := attempt{wait: b.config.Wait, admit: func() error {
		b.report(turn, success, nil) // now, not when fn returns, which may be an hour later
		verdict = neither
		return nil
	}}
	began, err = a.do(ctx, b.config.Locker, key, func(ctx context.Context, token mortise.Token) error {
		return fn(via(ctx, Primary), token)
	})
	cause = err
	if began || ctx.Err() != nil || harmless(err) {
		verdict = neither
	}
	return began, err
}

// harmless reports whether the error of a call whose fn did not begin is not held against the
// Locker.
func harmless(err error) bool {
	return deadlocked(err) || is(err, mortise.ErrBadKey, mortise.ErrBadRequest, mortise.ErrLeaving, mortise.ErrClosed,
		mortise.ErrHeld, mortise.ErrOverloaded, mortise.ErrQueueFull, mortise.ErrNoRoom)
}

// fallBack calls the Fallback; without one it returns why.
func (b *Breaker) fallBack(ctx context.Context, key string, why error,
	fn func(context.Context, mortise.Token) error) error {
	if b.config.Fallback == nil {
		return why
	}
	_, err := new(attempt).do(ctx, b.config.Fallback, key, func(ctx context.Context, token mortise.Token) error {
		return fn(via(ctx, Fallback), token)
	})
	return err
}

// enter reports whether to call the Locker. The result of that call is reported with turn.
func (b *Breaker) enter() (turn uint64, ok bool) {
	b.mu.Lock()
	turn, ok, change := b.circuit.enter(time.Now())
	b.mu.Unlock()
	b.tell(change)
	return turn, ok
}

func (b *Breaker) report(turn uint64, v verdict, cause error) {
	b.mu.Lock()
	change := b.circuit.report(time.Now(), turn, v, cause)
	b.mu.Unlock()
	b.tell(change)
}

func (b *Breaker) tell(change Change) {
	if b.config.OnChange != nil && change.Number != 0 {
		b.config.OnChange(change)
	}
}
