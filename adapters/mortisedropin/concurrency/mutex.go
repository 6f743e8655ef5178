package concurrency

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mortise-lock/mortise"
)

var (
	// ErrLocked means that TryLock found the lock taken. Then Mutex.Err wraps a *mortise.HeldError.
	ErrLocked = errors.New("mutex: locked by another holder")

	// ErrLockReleased means that the Mutex is not locked.
	ErrLockReleased = errors.New("mutex: it is not locked")
)

// Mutex is a lock in a session.
type Mutex struct {
	s   *Session
	pfx string

	mu   sync.Mutex
	lock *mortise.Lock // nil unless locked
	last error         // of the last Lock, TryLock or Unlock, with its cause
}

// NewMutex returns a Mutex that locks the key pfx.
func NewMutex(s *Session, pfx string) *Mutex { return &Mutex{s: s, pfx: pfx} }

// Lock waits until the Mutex is locked. It returns nil at once if it is locked already.
func (m *Mutex) Lock(ctx context.Context) error { return m.acquire(ctx, mortise.Request{Key: m.pfx}) }

// TryLock locks the Mutex if it is free, and otherwise returns ErrLocked.
func (m *Mutex) TryLock(ctx context.Context) error {
	return m.acquire(ctx, mortise.Request{Key: m.pfx, Try: true})
}

func (m *Mutex) acquire(ctx context.Context, r mortise.Request) error {
	m.mu.Lock()
	locked := m.lock != nil && m.lock.Err() == nil
	m.mu.Unlock()
	if locked {
		return nil
	}
	lock, err := m.s.acquire(ctx, r)
	if errors.Is(err, mortise.ErrHeld) {
		err = fmt.Errorf("%w: %w", ErrLocked, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.lock = lock
	}
	m.last = err
	return bare(err)
}

// Unlock releases the lock, even if ctx has ended: ctx limits only the wait for the confirmation.
// It returns ErrLockReleased if the Mutex is not locked, and ErrSessionExpired if the lock was lost
// before.
func (m *Mutex) Unlock(ctx context.Context) error {
	m.mu.Lock()
	lock := m.lock
	m.lock = nil
	m.mu.Unlock()
	if lock == nil {
		return ErrLockReleased
	}
	err := m.s.release(ctx, lock)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = err
	return bare(err)
}

// Key returns the key.
func (m *Mutex) Key() string { return m.pfx }

// Err returns nil while the Mutex is locked. Otherwise it returns the reason of the loss, or the
// error of the last Lock, TryLock or Unlock with its cause, such as a *mortise.HeldError or
// mortise.ErrLost, or ErrLockReleased.
func (m *Mutex) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.lock != nil:
		return m.lock.Err()
	case m.last != nil:
		return m.last
	}
	return ErrLockReleased
}

// Token returns the fencing token, or 0 if the Mutex is not locked. A resource that refuses lower
// tokens is safe from a holder that has lost its lock: see package fence of mortise.
func (m *Mutex) Token() mortise.Token {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lock == nil {
		return 0
	}
	return m.lock.Token()
}

// Context returns a child of parent that ends when the lock ends. Work under the lock should use
// it. It has ended if the Mutex is not locked.
func (m *Mutex) Context(parent context.Context) context.Context {
	m.mu.Lock()
	defer m.mu.Unlock()
	return contextOf(m.lock, parent)
}

func contextOf(lock *mortise.Lock, parent context.Context) context.Context {
	if lock != nil {
		return lock.Context(parent)
	}
	ctx, cancel := context.WithCancelCause(parent)
	cancel(ErrLockReleased)
	return ctx
}
