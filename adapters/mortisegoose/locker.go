package mortisegoose

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pressly/goose/v3/lock"

	"github.com/mortise-lock/mortise"
)

var (
	_ lock.Locker        = (*Locker)(nil)
	_ lock.SessionLocker = (*Locker)(nil)
)

// releaseTime limits how long an unlock waits for the confirmation of the release.
const releaseTime = 5 * time.Second

// Locker is a lock.Locker and a lock.SessionLocker of goose. Pass it to goose.WithLocker or to
// goose.WithSessionLocker.
type Locker struct {
	node *mortise.Node
	key  string

	// place has room for one provider of this Locker, from before its lock to its unlock. So no
	// provider unlocks what another holds, even if its own lock was lost.
	place chan struct{}

	mu    sync.Mutex
	lock  *mortise.Lock // nil if no provider holds the lock
	watch func() bool   // stops the watch of the connection; nil without one
}

// New returns a Locker that locks the key. All instances that migrate one database use the same
// key, for example "migrate/" and the name of the database.
func New(node *mortise.Node, key string) *Locker {
	return &Locker{node: node, key: key, place: make(chan struct{}, 1)}
}

// Lock waits until this instance holds the lock. It does not use the database, which may be nil. If
// ctx ends, Lock returns an error and holds nothing.
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error { return l.acquire(ctx, nil) }

// Unlock releases the lock, even if ctx has ended: it waits for the confirmation for at most 5 s.
// Its error wraps mortise.ErrLost if the lock was lost before.
func (l *Locker) Unlock(ctx context.Context, _ *sql.DB) error { return l.release(ctx) }

// SessionLock is like Lock. If the lock is lost before SessionUnlock, it closes the connection, as
// soon as the running transaction has ended.
func (l *Locker) SessionLock(ctx context.Context, conn *sql.Conn) error { return l.acquire(ctx, conn) }

// SessionUnlock is like Unlock.
func (l *Locker) SessionUnlock(ctx context.Context, _ *sql.Conn) error { return l.release(ctx) }

// Token returns the fencing token of the present hold, or 0 if no provider of this Locker holds the
// lock.
func (l *Locker) Token() mortise.Token {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return 0
	}
	return l.lock.Token()
}

func (l *Locker) acquire(ctx context.Context, conn *sql.Conn) error {
	select {
	case l.place <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("mortisegoose: lock %q: another provider of this instance migrates: %w", l.key, context.Cause(ctx))
	}
	// The label prevents warnings about a long hold.
	lock, err := l.node.Acquire(ctx, mortise.Request{Key: l.key, Labels: map[string]string{"mortise.purpose": "job"}})
	if err != nil {
		<-l.place
		return fmt.Errorf("mortisegoose: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lock = lock
	if conn != nil {
		held := lock.Context(context.WithoutCancel(ctx))
		l.watch = context.AfterFunc(held, func() {
			if errors.Is(context.Cause(held), mortise.ErrLost) {
				_ = conn.Close()
			}
		})
	}
	return nil
}

func (l *Locker) release(ctx context.Context) error {
	l.mu.Lock()
	lock, watch := l.lock, l.watch
	l.lock, l.watch = nil, nil
	l.mu.Unlock()
	if lock == nil {
		return fmt.Errorf("mortisegoose: unlock %q, which is not locked", l.key)
	}
	defer func() { <-l.place }()
	if watch != nil {
		watch()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	if err := lock.Unlock(ctx); err != nil {
		return fmt.Errorf("mortisegoose: unlock %q: %w", l.key, err)
	}
	return nil
}
