package redsync

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisedropin/internal/hold"
)

// Mutex is a lock that is not re-entrant. It is made by NewMutex.
type Mutex struct {
	name     string
	node     *mortise.Node
	expiry   time.Duration
	tries    int
	delay    DelayFunc
	generate func() (string, error) // nil means the token
	again    bool
	refused  error

	mu    sync.Mutex
	value string
	hold  *hold.Hold // the last grant, even if it has ended; nil before the first
}

// Name returns the key.
func (m *Mutex) Name() string { return m.name }

// Value returns the value of the last lock, or "" before the first.
func (m *Mutex) Value() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.value
}

// Lock is LockContext with context.Background().
func (m *Mutex) Lock() error { return m.LockContext(context.Background()) }

// LockContext waits until the lock is held, for as long as the retries of the Mutex allow. The
// error is a *ErrTaken if another holder had the lock for all that time, and otherwise wraps
// ErrFailed.
func (m *Mutex) LockContext(ctx context.Context) error { return m.acquire(ctx, m.tries) }

// TryLock is TryLockContext with context.Background().
func (m *Mutex) TryLock() error { return m.TryLockContext(context.Background()) }

// TryLockContext takes the lock if it is free, and returns a *ErrTaken otherwise.
func (m *Mutex) TryLockContext(ctx context.Context) error { return m.acquire(ctx, 1) }

func (m *Mutex) acquire(ctx context.Context, tries int) error {
	if m.refused != nil {
		return m.refused
	}
	if ctx == nil {
		ctx = context.Background()
	}
	r := mortise.Request{Key: m.name}
	if m.generate != nil {
		value, err := m.generate()
		if err != nil {
			return err
		}
		r.Value = value
	}
	retry := 0
	lock, err := hold.Acquire(ctx, m.node, r, func() time.Duration {
		if retry++; retry >= tries {
			return 0
		}
		return m.delay(retry)
	})
	if err != nil {
		return m.failure(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hold, m.value = hold.New(lock, m.expiry), r.Value
	if m.generate == nil {
		m.value = strconv.FormatUint(uint64(lock.Token()), 10)
	}
	return nil
}

func (m *Mutex) failure(err error) error {
	if errors.Is(err, mortise.ErrHeld) || errors.Is(err, hold.ErrWaited) && m.node.Status().Leader != "" {
		return &ErrTaken{cause: err}
	}
	return fmt.Errorf("%w: %w", ErrFailed, err)
}

// current returns the last grant, or an error that wraps ended if there is none.
func (m *Mutex) current(ended error) (*hold.Hold, error) {
	if m.refused != nil {
		return nil, m.refused
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hold == nil {
		return nil, fmt.Errorf("%w: %q was never locked by this Mutex", ended, m.name)
	}
	return m.hold, nil
}

// Unlock is UnlockContext with context.Background().
func (m *Mutex) Unlock() (bool, error) { return m.UnlockContext(context.Background()) }

// UnlockContext releases the lock, even if ctx has ended. It returns true if the lock was held
// until then. Otherwise the error wraps ErrLockAlreadyExpired, and the reason, such as
// mortise.ErrLost.
func (m *Mutex) UnlockContext(ctx context.Context) (bool, error) {
	h, err := m.current(ErrLockAlreadyExpired)
	if err != nil {
		return false, err
	}
	if err := h.Release(ctx); err != nil {
		return false, fmt.Errorf("%w: %w", ErrLockAlreadyExpired, err)
	}
	return true, nil
}

// Extend is ExtendContext with context.Background().
func (m *Mutex) Extend() (bool, error) { return m.ExtendContext(context.Background()) }

// ExtendContext makes the expiry of WithExpiry begin anew. It sends nothing. Without WithExpiry it
// reports whether the lock is held. If the lock has ended, the error wraps ErrExtendFailed, unless
// WithSetNXOnExtend was given and the lock is free.
func (m *Mutex) ExtendContext(ctx context.Context) (bool, error) {
	h, err := m.current(ErrExtendFailed)
	if err != nil {
		return false, err
	}
	if err = h.Extend(m.expiry); err == nil {
		return true, nil
	}
	if m.again {
		if err = m.acquire(ctx, 1); err == nil {
			return true, nil
		}
	}
	return false, fmt.Errorf("%w: %w", ErrExtendFailed, err)
}

// Valid is ValidContext with context.Background().
func (m *Mutex) Valid() (bool, error) { return m.ValidContext(context.Background()) }

// ValidContext reports whether the lock is held at this moment. It sends nothing: the lease of the
// node decides.
func (m *Mutex) ValidContext(context.Context) (bool, error) {
	if m.refused != nil {
		return false, m.refused
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hold != nil && m.hold.Err() == nil, nil
}

// Until returns the time until which the lock is held unless it is unlocked: the end of the lease
// or of the expiry, whichever is earlier. The lease is renewed by itself, so a later call returns a
// later time. Until returns the zero time before the first lock, and a time in the past when the
// lock has ended.
func (m *Mutex) Until() time.Time {
	m.mu.Lock()
	h := m.hold
	m.mu.Unlock()
	if h == nil {
		return time.Time{}
	}
	lease := time.Now().Add(m.node.Status().LeaseFor)
	expiry, limited := h.Until()
	switch {
	case h.Err() != nil:
		return time.Now().Add(-1)
	case limited && expiry.Before(lease):
		return expiry
	}
	return lease
}

// Token returns the fencing token of the last lock, or 0 before the first. A resource that refuses
// lower tokens is safe from a holder that has lost its lock: see package fence of mortise.
func (m *Mutex) Token() mortise.Token {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hold == nil {
		return 0
	}
	return m.hold.Lock().Token()
}

// Context returns a child of parent that ends when the present lock ends. Work under the lock
// should use it. It has ended if the Mutex holds no lock.
func (m *Mutex) Context(parent context.Context) context.Context {
	h, err := m.current(ErrFailed)
	if err == nil {
		return h.Lock().Context(parent)
	}
	ctx, cancel := context.WithCancelCause(parent)
	cancel(err)
	return ctx
}
