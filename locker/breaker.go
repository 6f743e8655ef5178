package locker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

// ErrOpen says that a Breaker without a Fallback is open: the Locker was not asked, fn did not run,
// and nothing is held.
var ErrOpen = errors.New("locker: the breaker is open")

// BreakerConfig says what a Breaker asks, when it stops, and where it goes then.
type BreakerConfig struct {
	// Locker is who is asked. Required.
	Locker Locker

	// Wait is how long fn may take to begin; longer is a failure, [ErrWait]. It does not bound fn
	// itself. Required, since no default fits: a lock that others hold for long looks like a locker
	// that is down. Choose it well above the longest wait in a healthy queue, and below the
	// deadlines of the callers: a caller that gives up before it says nothing of the Locker.
	Wait time.Duration

	// Failures is how many calls in a row have to fail until the breaker opens: 1 to 1,000,000.
	// Default: 5.
	Failures int

	// Pause is how long it stays open until one call is let through as a probe. Default: 10s.
	Pause time.Duration

	// Fallback is who is asked while the breaker is open. It gives up the guarantee of Locker: who
	// holds a lock of one does not exclude who holds it of the other. While it is in use, and until
	// the last holder of each side has ended, two may work under one key: two instances that each
	// fall back to a Local; an instance that falls back and one that still reaches the Locker; and
	// two calls of this process, before and after the change. That may be so although the Locker
	// works, when a lock is held for longer than Wait. Use it where a lock saves work, and never
	// alone where it protects data: there fence with tokens; those of a Local are below every
	// node's, so the resource refuses its holders. [Via] tells fn who holds its lock. Default:
	// none, calls fail with ErrOpen.
	Fallback Locker

	// OnChange is told of every change of the state, on the goroutine of the call that caused it,
	// which waits for its return. Changes may be reported at once by several goroutines; Number
	// orders them. Default: none.
	OnChange func(Change)
}

// Breaker is a Locker that stops asking another one that fails, so that callers are not held up by
// it one after the other. It looks only at whether fn begins:
//
//   - success: fn has begun. Its error, a panic and the loss of the lock say nothing against the
//     Locker.
//   - failure: fn has not begun within Wait, or the Locker returned an error or panicked.
//   - neither: ctx ended, or the Locker has refused this call and works (see [Temporary],
//     ErrNotReady excepted), or it was closed by the program itself, which a fallback must not
//     undo: mortise.ErrBadKey, ErrBadRequest, *DeadlockError, ErrLeaving, ErrClosed.
//
// After so many failures in a row it opens. Then calls go to the Fallback, or fail with ErrOpen.
// After a pause one call is let through, the probe; its success closes the breaker, its failure
// opens it for another pause. A call that fails while the breaker is open, or that opens it, goes
// to the Fallback as well. It is safe for concurrent use.
type Breaker struct {
	config  BreakerConfig
	mu      sync.Mutex
	circuit circuit
}

// NewBreaker returns a Breaker, closed, or an error that names every mistake of the configuration.
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
		wrong.add("Wait", "%v is not above 0: say how long a lock may take, longer than the longest wait for one that others hold", c.Wait)
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

// State returns the state at this moment. It becomes HalfOpen only when a call comes.
func (b *Breaker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.circuit.state
}

// Do asks the Locker, or the Fallback, as the state says. It returns what that returns; ErrWait; or
// ErrOpen.
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

// try asks the Locker, and says how that went even if it panics.
func (b *Breaker) try(ctx context.Context, key string, turn uint64,
	fn func(context.Context, mortise.Token) error) (began bool, err error) {
	verdict, cause := failure, errors.New("locker: the Locker panicked")
	defer func() { b.report(turn, verdict, cause) }()
	a := attempt{wait: b.config.Wait, admit: func() error {
		b.report(turn, success, nil) // now, not when fn returns: that may take an hour
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

// harmless reports whether an error of a call whose fn did not begin says nothing against the
// Locker.
func harmless(err error) bool {
	return deadlocked(err) || is(err, mortise.ErrBadKey, mortise.ErrBadRequest, mortise.ErrLeaving, mortise.ErrClosed,
		mortise.ErrHeld, mortise.ErrOverloaded, mortise.ErrQueueFull, mortise.ErrNoRoom)
}

// fallBack asks the Fallback; without one it returns why the Locker does not hold the lock.
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

// enter reports whether to ask the Locker; its result is reported with turn.
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

// tell reports a change, if there is one.
func (b *Breaker) tell(change Change) {
	if b.config.OnChange != nil && change.Number != 0 {
		b.config.OnChange(change)
	}
}
