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
	last  error      // of the last call that has failed since, with its cause
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
// error is a *ErrTaken if another holder had the lock for all that time, is ErrFailed if ctx has
// ended, and otherwise wraps ErrFailed.
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
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.last = failure(err)
		if ctx.Err() != nil {
			return ErrFailed // itself, as in redsync
		}
		return m.last
	}
	m.hold, m.value, m.last = hold.New(lock, m.expiry), r.Value, nil
	if m.generate == nil {
		m.value = strconv.FormatUint(uint64(lock.Token()), 10)
	}
	return nil
}

func failure(err error) error {
	if errors.Is(err, mortise.ErrHeld) || errors.Is(err, hold.ErrWaited) {
		return &ErrTaken{cause: err}
	}
	return fmt.Errorf("%w: %w", ErrFailed, err)
}

// fails notes that a call has failed and why, and returns the error that code for redsync expects,
// for the operator ==.
func (m *Mutex) fails(sentinel, cause error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = fmt.Errorf("%w: %w", sentinel, cause)
	return sentinel
}

// Err returns nil while the lock is held. Otherwise it returns the error of the last call that has
// failed, with its cause, such as mortise.ErrLost, or the reason why the lock has ended.
func (m *Mutex) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	if m.hold != nil {
		if err = m.hold.Err(); err == nil {
			return nil
		}
	}
	switch {
	case m.last != nil:
		return m.last
	case err != nil:
		return fmt.Errorf("redsync: the lock of %q has ended: %w", m.name, err)
	}
	return fmt.Errorf("redsync: %w", m.never())
}

func (m *Mutex) never() error { return fmt.Errorf("%q was never locked by this Mutex", m.name) }

// current returns the last grant, or an error if there is none.
func (m *Mutex) current() (*hold.Hold, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hold == nil {
		return nil, m.never()
	}
	return m.hold, nil
}

// Unlock is UnlockContext with context.Background().
func (m *Mutex) Unlock() (bool, error) { return m.UnlockContext(context.Background()) }

// UnlockContext releases the lock, even if ctx has ended. It returns true if the lock was held
// until then, and ErrLockAlreadyExpired if it was not. Err has the reason, such as mortise.ErrLost.
func (m *Mutex) UnlockContext(ctx context.Context) (bool, error) {
	if m.refused != nil {
		return false, m.refused
	}
	h, err := m.current()
	if err != nil {
		return false, m.fails(ErrLockAlreadyExpired, err)
	}
	err = h.Release(ctx)
	switch {
	case err == nil:
		return true, nil
	case hold.Ended(err):
		return false, m.fails(ErrLockAlreadyExpired, err)
	}
	return false, fmt.Errorf("redsync: %w", err)
}

// Extend is ExtendContext with context.Background().
func (m *Mutex) Extend() (bool, error) { return m.ExtendContext(context.Background()) }

// ExtendContext makes the expiry of WithExpiry begin anew. It sends nothing. Without WithExpiry it
// reports whether the lock is held. If the lock has ended, the error is ErrExtendFailed, unless
// WithSetNXOnExtend was given and the lock is free. Err has the reason.
func (m *Mutex) ExtendContext(ctx context.Context) (bool, error) {
	if m.refused != nil {
		return false, m.refused
	}
	h, err := m.current()
	if err != nil {
		return false, m.fails(ErrExtendFailed, err)
	}
	if err = h.Extend(m.expiry); err == nil {
		return true, nil
	}
	if m.again {
		if m.acquire(ctx, 1) == nil {
			return true, nil
		}
		err = errors.Unwrap(m.Err()) // without the words of Lock
	}
	return false, m.fails(ErrExtendFailed, err)
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
	h, err := m.current()
	if m.refused != nil {
		err = m.refused
	}
	if err == nil {
		return h.Lock().Context(parent)
	}
	ctx, cancel := context.WithCancelCause(parent)
	cancel(err)
	return ctx
}
