// Package hold is a lock that ends by itself after a limit, unless the limit is set anew. The
// drop-in packages need it, because a lock in Redis ends so.
//
// # Guarantees
//
// A Hold reports that it is held only while its lock is held and its limit has not passed. The lock
// is released when the limit passes.
//
// # Concurrency
//
// All methods are safe for concurrent use. A Hold uses a timer, and no goroutine while it waits for
// that.
//
// # Failure
//
// The timer does not run while the machine sleeps. A lease does: a sleep that is longer than the
// TTL of the session ends the lock.
package hold

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

// ErrExpired means that the limit of a hold has passed. The lock is then free for others.
var ErrExpired = errors.New("the expiry of the lock has passed")

// releaseTime limits how long a release waits for its confirmation.
const releaseTime = 5 * time.Second

// Hold is a lock with a limit.
type Hold struct {
	lock *mortise.Lock

	mu       sync.Mutex
	until    time.Time   // the end of the limit; the zero time means none
	timer    *time.Timer // nil means no limit
	expired  bool
	released bool
}

// New returns a Hold of a lock that was granted. A limit of zero means none. The Hold unlocks it.
func New(lock *mortise.Lock, limit time.Duration) *Hold {
	h := &Hold{lock: lock}
	if limit > 0 {
		h.until = time.Now().Add(limit)
		h.timer = time.AfterFunc(limit, h.fire)
	}
	return h
}

func (h *Hold) fire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released || h.expired {
		return
	}
	if left := time.Until(h.until); left > 0 { // Extend came in between
		h.timer.Reset(left)
		return
	}
	h.expire()
}

// expire requires mu. UnlockSoon does not wait.
func (h *Hold) expire() {
	h.expired = true
	_ = h.lock.UnlockSoon()
}

// Lock returns the lock.
func (h *Hold) Lock() *mortise.Lock { return h.lock }

// Err returns nil while the lock is held.
func (h *Hold) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err()
}

func (h *Hold) err() error {
	if !h.released && !h.expired && h.timer != nil && time.Until(h.until) <= 0 {
		h.expire() // the timer is late
	}
	switch {
	case h.released:
		return mortise.ErrUnlocked
	case h.expired:
		return ErrExpired
	}
	return h.lock.Err()
}

// Until returns the time at which the limit passes, and false if there is no limit.
func (h *Hold) Until() (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until, h.timer != nil
}

// Extend sets the limit anew, from now on. It returns the error of Err if the lock is not held. A
// limit of zero keeps the limit as it is.
func (h *Hold) Extend(limit time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.err(); err != nil || limit <= 0 {
		return err
	}
	h.until = time.Now().Add(limit)
	if h.timer == nil {
		h.timer = time.AfterFunc(limit, h.fire)
	} else {
		h.timer.Reset(limit)
	}
	return nil
}

// Ended reports whether an error of a Hold means that it had ended before. If it does not, Release
// was not confirmed.
func Ended(err error) bool {
	return errors.Is(err, mortise.ErrLost) || errors.Is(err, mortise.ErrUnlocked) || errors.Is(err, ErrExpired)
}

// Release unlocks the lock, even if ctx has ended, and waits for the confirmation for at most 5 s.
// It returns nil if the lock was held until then. A second call returns mortise.ErrUnlocked.
func (h *Hold) Release(ctx context.Context) error {
	h.mu.Lock()
	err := h.err()
	if err == nil {
		h.released = true
	}
	if h.timer != nil {
		h.timer.Stop()
	}
	h.mu.Unlock()
	if errors.Is(err, mortise.ErrUnlocked) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	if unlocked := h.lock.Unlock(ctx); err == nil && unlocked != nil {
		return fmt.Errorf("unlock %q: %w", h.lock.Key(), unlocked)
	}
	return err
}
