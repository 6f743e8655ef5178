package mortisepair

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/locker"
)

// ErrOpen means that a Breaker without a Fallback is open. The Locker was not called, fn did not
// run, and nothing is held.
var ErrOpen = errors.New("mortisepair: the breaker is open")

// BreakerConfig configures a Breaker.
type BreakerConfig struct {
	Locker locker.Locker

	// Wait is how long the Locker may take to begin fn. If fn does not begin in this time, the call
	// counts as a failure with [ErrWait]. Wait does not limit fn itself. Set it well above the
	// longest wait in a normal queue, and below the deadlines of the callers, because a call whose
	// context ends earlier does not count as a failure. Required.
	Wait time.Duration

	// Failures is how many consecutive calls must fail to open the breaker: 1 to 1,000,000.
	// Default: 5.
	Failures int

	// Pause is how long the breaker is open before one call may use the Locker as a probe. Default:
	// 10s.
	Pause time.Duration

	// Fallback is called while the breaker is open. Holders of the Locker and of the Fallback do
	// not exclude each other. So two calls may work under one key at the same time: on two
	// instances whose Fallback is a Local, on one instance that uses its Fallback and another that
	// reaches the Locker, or in one process if the state changes while a lock is held. This can
	// happen even if the Locker works, when a lock is held for longer than Wait.
	//
	// Use a Fallback where a lock only avoids double work. Where a lock protects data, also fence
	// with tokens: the tokens of a Local are below those of every node, so the resource refuses
	// holders of a Local. [Via] tells fn which Locker holds its lock. Default: none, calls fail
	// with ErrOpen.
	Fallback locker.Locker

	// OnChange is called with every change of the state. It runs on the goroutine of the call that
	// caused the change, and this call waits until OnChange returns. Several goroutines may call
	// OnChange concurrently; Change.Number orders the changes. Default: none.
	OnChange func(Change)
}

// Breaker is a Locker that stops calling another Locker when that fails. It classifies calls by
// whether fn begins:
//
//   - success: fn has begun, whatever its result is.
//   - failure: fn has not begun within Wait, or the Locker returned an error or panicked.
//   - neither: ctx ended, or the Locker works but refused this call. The errors of a refusal are
//     locker.ErrHeld, ErrOverloaded, ErrQueueFull, ErrNoRoom, ErrBadKey, ErrBadRequest,
//     ErrUnsupported, ErrDeadlock, ErrLeaving and ErrClosed. The last two mean that the program
//     stops its own node.
//
// After Failures consecutive failures the breaker opens. Then calls use the Fallback, or fail with
// ErrOpen. After Pause one call uses the Locker as a probe: success closes the breaker, and failure
// opens it for another Pause. A call that opens the breaker, or that fails while it is open, uses
// the Fallback after its failure.
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

// State returns the present state. An open breaker becomes HalfOpen only when a call arrives.
func (b *Breaker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.circuit.state
}

// Trip opens the breaker until Reset, whether or not the Locker works. With a Fallback it makes the
// locks of unimportant work local, for example while the cluster is repaired. OnChange reports it,
// with the reason in Change.Cause. Calls that use the Locker at this time continue.
func (b *Breaker) Trip(reason string) {
	b.mu.Lock()
	change := b.circuit.trip(fmt.Errorf("mortisepair: the breaker was tripped: %s", reason))
	b.mu.Unlock()
	b.tell(change)
}

// Reset closes the breaker after Trip. Otherwise it does nothing.
func (b *Breaker) Reset() {
	b.mu.Lock()
	change := b.circuit.reset()
	b.mu.Unlock()
	b.tell(change)
}

// Do calls the Locker or the Fallback, depending on the state. It returns the result of the last of
// these calls, ErrWait or ErrOpen.
func (b *Breaker) Do(ctx context.Context, key string, fn func(ctx context.Context, token locker.Token) error) error {
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
	fn func(context.Context, locker.Token) error) (began bool, err error) {
	verdict, cause := failure, errors.New("mortisepair: the Locker panicked")
	defer func() { b.report(turn, verdict, cause) }()
	a := attempt{wait: b.config.Wait, admit: func() {
		b.report(turn, success, nil) // reported here because fn may run for hours
		verdict = neither
	}}
	began, err = a.do(ctx, b.config.Locker, key, func(ctx context.Context, token locker.Token) error {
		return fn(via(ctx, Primary), token)
	})
	cause = err
	if began || ctx.Err() != nil || harmless(err) {
		verdict = neither
	}
	return began, err
}

func harmless(err error) bool {
	for _, refusal := range [...]error{locker.ErrBadKey, locker.ErrBadRequest, locker.ErrLeaving, locker.ErrClosed,
		locker.ErrHeld, locker.ErrOverloaded, locker.ErrQueueFull, locker.ErrNoRoom, locker.ErrDeadlock,
		locker.ErrUnsupported} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

func (b *Breaker) fallBack(ctx context.Context, key string, why error,
	fn func(context.Context, locker.Token) error) error {
	if b.config.Fallback == nil {
		return why
	}
	_, err := new(attempt).do(ctx, b.config.Fallback, key, func(ctx context.Context, token locker.Token) error {
		return fn(via(ctx, Fallback), token)
	})
	return err
}

// enter reports whether to call the Locker. The caller must pass turn and the result of its call
// to the method report.
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
