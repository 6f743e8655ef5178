package mortisevault

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/vault/sdk/physical"

	"github.com/mortise-lock/mortise"
)

// answerTime limits how long Value waits for its answer, and Unlock for its confirmation.
const answerTime = 5 * time.Second

var _ physical.Lock = (*lock)(nil)

// lock is a physical.Lock.
type lock struct {
	node       *mortise.Node
	key, value string

	mu   sync.Mutex
	held *mortise.Lock // nil before Lock and after Unlock
}

// Lock waits until this lock is held. If stopCh closes first, Lock returns nil and no error, and
// the lock is not held. The returned channel is closed when the lock is lost or unlocked, or when
// the node begins to leave. Lock of a lock that is held is an error. A lock that was lost can be
// locked again.
func (l *lock) Lock(stopCh <-chan struct{}) (<-chan struct{}, error) {
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	if held != nil && held.Err() == nil {
		return nil, fmt.Errorf("mortisevault: %q is already locked by this lock", l.key)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-stopCh:
			cancel()
		case <-ctx.Done():
		}
	}()
	// The label prevents warnings about a long hold.
	held, err := l.node.Acquire(ctx, mortise.Request{Key: l.key, Value: l.value,
		Labels: map[string]string{"mortise.purpose": "election"}})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, nil // stopCh is closed
	case err != nil:
		return nil, fmt.Errorf("mortisevault: lock %q: %w", l.key, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
	return held.Context(context.Background()).Done(), nil
}

// Unlock releases the lock, and waits for the confirmation for at most 5 s. Its error wraps
// mortise.ErrLost if the lock was lost before. It returns nil if the lock is not locked.
func (l *lock) Unlock() error {
	l.mu.Lock()
	held := l.held
	l.held = nil
	l.mu.Unlock()
	if held == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	if err := held.Unlock(ctx); err != nil {
		return fmt.Errorf("mortisevault: unlock %q: %w", l.key, err)
	}
	return nil
}

// Value reports whether any server holds the lock, and returns the value of the holder. It asks the
// leader of the group, for at most 5 s.
func (l *lock) Value() (held bool, value string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	info, err := l.node.Peek(ctx, l.key)
	if err != nil {
		return false, "", fmt.Errorf("mortisevault: value of %q: %w", l.key, err)
	}
	if info.Held == 0 {
		return false, "", nil
	}
	return true, info.Queue[0].Value, nil // the holder is the first
}
