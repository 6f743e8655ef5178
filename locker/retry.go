package locker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mortise-lock/mortise"
)

// RetryConfig configures a Retry. Every field except Locker has a default for its zero value.
type RetryConfig struct {
	Locker Locker

	// Attempts is the maximum number of calls of the Locker in one call of Do: 1 to 1000. Default:
	// 5.
	Attempts int

	// Pause is the longest pause after the first attempt. The longest pause doubles with each
	// further attempt, up to MaxPause. Every pause is a random time up to the longest pause, so
	// that calls that failed together do not retry together. 1ms to 1h. Default: 20ms.
	Pause time.Duration

	// MaxPause is the upper limit of the longest pause. It is at least Pause and at most 1h.
	// Default: 2s, or Pause if that is longer.
	MaxPause time.Duration

	// Temporary reports whether to retry after an error for which the function [Temporary] returns
	// false, such as an error of another lock service. It is not called if fn has begun, nor for an
	// error for which [Final] returns true. Several goroutines may call it concurrently. Default:
	// no retry after such errors.
	Temporary func(error) bool
}

// Retry is a Locker that repeats a call of another Locker after a temporary error. It never repeats
// a call in which fn has begun, so fn runs at most once.
type Retry struct{ config RetryConfig }

// NewRetry returns a Retry, or an error that names every mistake of the configuration.
func NewRetry(c RetryConfig) (*Retry, error) {
	if c.Attempts == 0 {
		c.Attempts = 5
	}
	if c.Pause == 0 {
		c.Pause = 20 * time.Millisecond
	}
	if c.MaxPause == 0 {
		c.MaxPause = max(2*time.Second, c.Pause)
	}
	var wrong mistakes
	wrong.need("Locker", c.Locker)
	if c.Attempts < 1 || c.Attempts > 1000 {
		wrong.add("Attempts", "%d is not between 1 and 1000", c.Attempts)
	}
	if c.Pause < time.Millisecond || c.Pause > time.Hour {
		wrong.add("Pause", "%v is not between 1ms and 1h", c.Pause)
	}
	if c.MaxPause < c.Pause || c.MaxPause > time.Hour {
		wrong.add("MaxPause", "%v is not between Pause (%v) and 1h", c.MaxPause, c.Pause)
	}
	if err := wrong.err(); err != nil {
		return nil, err
	}
	return &Retry{c}, nil
}

// Temporary reports whether the same call may succeed a moment later: after mortise.ErrNotReady,
// ErrHeld, ErrOverloaded (which a *LimitError matches), ErrQueueFull and ErrNoRoom.
// Node.TryLock returns all these errors. Node.Do returns only ErrOverloaded, ErrQueueFull and
// ErrNoRoom.
func Temporary(err error) bool {
	return !Final(err) && is(err, mortise.ErrNotReady, mortise.ErrHeld, mortise.ErrOverloaded, mortise.ErrQueueFull,
		mortise.ErrNoRoom)
}

// Final reports whether a retry after an error is useless or wrong: after mortise.ErrBadKey,
// ErrBadRequest, ErrUnsupported, ErrLost, ErrUnlocked, ErrLeaving, ErrClosed and *DeadlockError,
// after the end of a context, and after ErrOpen and ErrWait, because the time of a Breaker or a
// Patience is used up.
func Final(err error) bool {
	return deadlocked(err) || is(err, mortise.ErrBadKey, mortise.ErrBadRequest, mortise.ErrUnsupported,
		mortise.ErrLost, mortise.ErrUnlocked, mortise.ErrLeaving, mortise.ErrClosed,
		context.Canceled, context.DeadlineExceeded, ErrOpen, ErrWait)
}

func deadlocked(err error) bool {
	_, ok := errors.AsType[*mortise.DeadlockError](err)
	return ok
}

func is(err error, any ...error) bool {
	for _, target := range any {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// Do calls the Locker until fn has begun, an error is not temporary, the attempts are used up, or
// ctx ends. It returns the result of the last attempt. If ctx has ended, the error wraps the
// context's error and the error of the last attempt.
func (r *Retry) Do(ctx context.Context, key string, fn func(ctx context.Context, token mortise.Token) error) error {
	if r.config.Locker == nil {
		return unmade("Retry")
	}
	for tried := 1; ; tried++ {
		began, err := new(attempt).do(ctx, r.config.Locker, key, fn)
		switch {
		case began || !r.again(err):
			return err
		case tried == r.config.Attempts:
			return fmt.Errorf("locker: %d attempt(s): %w", tried, err)
		}
		if !pause(ctx, r.longest(tried)) {
			return fmt.Errorf("locker: lock %q: %w, while waiting to make attempt %d; the one before failed: %w", key,
				ended(ctx),
				tried+1, err)
		}
	}
}

func (r *Retry) again(err error) bool {
	return Temporary(err) || !Final(err) && r.config.Temporary != nil && r.config.Temporary(err)
}

func (r *Retry) longest(tried int) time.Duration {
	longest := r.config.Pause
	for range tried - 1 {
		if longest >= r.config.MaxPause {
			break
		}
		longest *= 2 // below 2h, so it cannot overflow
	}
	return min(longest, r.config.MaxPause)
}

func pause(ctx context.Context, longest time.Duration) bool {
	timer := time.NewTimer(rand.N(longest + 1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
