package hold

import (
	"errors"
	"sync"

	"github.com/mortise-lock/mortise/session/client"
)

// MinIdle is the shortest MaxIdle of a request, unless it is zero.
const MinIdle = client.MinIdle

// Ended is a hold that can end. *mortise.Lock implements it.
type Ended interface {
	Done() <-chan struct{}
	Err() error
}

// Watch runs fn under a hold without a JeopardyGrace. If mortise.Request.MaxIdle ends the hold
// before fn has returned, Watch calls hung, on another goroutine and at once: fn may never return.
// Watch returns after both, even if fn panics.
func Watch(h Ended, hung func(why error), fn func()) {
	returned := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-h.Done():
			if why := h.Err(); IsIdle(why) {
				hung(why)
			}
		case <-returned:
		}
	})
	defer watching.Wait()
	defer close(returned)
	fn()
}

// IsIdle reports whether err means that mortise.Request.MaxIdle has ended a hold.
func IsIdle(err error) bool { return errors.Is(err, client.IdleError{}) }
