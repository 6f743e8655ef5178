package hold

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/locker"
)

var (
	// ErrWaited means that the retries of a caller would be used up by now.
	ErrWaited = errors.New("the lock was not free during all retries")

	// ErrAway means the same, and that the node knows no leader, so the lock may be free.
	ErrAway = errors.New("no leader of the group was reached during all retries")
)

// endError is the end of a wait. It has the text of mortise with the reason in the place of its
// context, which the caller does not know. It wraps no error of a context: that of the caller has
// not ended.
type endError struct {
	reason error
	text   string
}

func (e *endError) Error() string        { return e.text }
func (e *endError) Is(target error) bool { return target == e.reason }

// Acquire waits in the queue of the lock for as long as a caller that polls would retry. next
// returns the pause before each retry, and zero or less if there is no further retry. If its first
// result is zero or less, the lock must be free. The error wraps ErrWaited or ErrAway if the
// retries are used up, and mortise.ErrHeld if the lock had to be free.
func Acquire(ctx context.Context, by locker.Acquirer[mortise.Request, *mortise.Lock], r mortise.Request,
	next func() time.Duration) (*mortise.Lock, error) {
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
		reason := ErrWaited
		if node, is := by.(interface{ Status() mortise.Status }); is && node.Status().Leader == "" {
			reason = ErrAway
		}
		ended := context.Canceled.Error() + ": " + ErrWaited.Error()
		return nil, &endError{reason, strings.Replace(err.Error(), ended, reason.Error(), 1)}
	}
	return lock, err
}
