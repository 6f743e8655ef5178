package hold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
)

// ErrWaited means that the retries of a caller would be used up by now.
var ErrWaited = errors.New("the lock was not free during all retries")

// Acquirer acquires locks. *mortise.Node and *mortise.Session implement it.
type Acquirer interface {
	Acquire(ctx context.Context, r mortise.Request) (*mortise.Lock, error)
}

// Acquire waits in the queue of the lock for as long as a caller that polls would retry. next
// returns the pause before each retry, and zero or less if there is no further retry. If its first
// result is zero or less, the lock must be free. The error wraps ErrWaited if the retries are used
// up, and mortise.ErrHeld if the lock had to be free.
func Acquire(ctx context.Context, by Acquirer, r mortise.Request, next func() time.Duration) (*mortise.Lock, error) {
	pause := next()
	if pause <= 0 {
		r.Try = true
		return by.Acquire(ctx, r)
	}
	waiting, stop := context.WithCancelCause(ctx)
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		for ; pause > 0; pause = next() {
			select {
			case <-waiting.Done():
				return
			case <-time.After(pause):
			}
		}
		stop(ErrWaited)
	}()
	lock, err := by.Acquire(waiting, r)
	stop(nil)
	<-counted
	if err != nil && context.Cause(waiting) == ErrWaited {
		return nil, fmt.Errorf("%w: %v", ErrWaited, err) // does not wrap err: the caller's context has not ended
	}
	return lock, err
}
