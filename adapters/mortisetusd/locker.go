package mortisetusd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/mortise-lock/mortise"
)

const (
	maxKey = 512

	// releaseTime limits how long Unlock waits for the confirmation of the release.
	releaseTime = 5 * time.Second
)

var _ handler.Locker = (*Locker)(nil)

// Locker is a handler.Locker of tusd. Pass it to StoreComposer.UseLocker, or call UseIn.
type Locker struct {
	node   *mortise.Node
	prefix string
}

// New returns a Locker. The lock of an upload has the key prefix + ID. All instances that share
// their uploads use the same prefix, for example "uploads/", of at most 256 bytes.
func New(node *mortise.Node, prefix string) *Locker { return &Locker{node: node, prefix: prefix} }

// UseIn makes the handler with this composer use the Locker.
func (l *Locker) UseIn(composer *handler.StoreComposer) { composer.UseLocker(l) }

// NewLock returns an unlocked lock of the upload. Its error is always nil.
func (l *Locker) NewLock(id string) (handler.Lock, error) {
	return &lock{node: l.node, key: l.key(id)}, nil
}

func (l *Locker) key(id string) string {
	key := l.prefix + id
	if len(key) <= maxKey && utf8.ValidString(id) && !strings.ContainsFunc(id, unicode.IsControl) {
		return key
	}
	sum := sha256.Sum256([]byte(id))
	return l.prefix + "sha256/" + hex.EncodeToString(sum[:])
}

// lock is a handler.Lock.
type lock struct {
	node *mortise.Node
	key  string

	mu   sync.Mutex
	held *mortise.Lock // nil while unlocked
}

// Lock waits until the caller holds the lock. It returns handler.ErrLockTimeout if ctx ends first.
// requestUnlock is called at most once, on a goroutine of its own, and not for a lock that was
// unlocked before another caller waited. It may call Unlock.
func (l *lock) Lock(ctx context.Context, requestUnlock func()) error {
	// The label prevents warnings about a long hold.
	held, err := l.node.Acquire(ctx, mortise.Request{Key: l.key, Notice: true,
		Labels: map[string]string{"mortise.purpose": "job"}})
	switch {
	case err != nil && ctx.Err() != nil:
		return handler.ErrLockTimeout // itself, because older versions of tusd do not unwrap errors
	case err != nil:
		return fmt.Errorf("mortisetusd: lock %q: %w", l.key, err)
	}
	l.mu.Lock()
	l.held = held
	l.mu.Unlock()
	if requestUnlock != nil {
		over := held.Context(context.Background())
		go request(held, over, requestUnlock)
	}
	return nil
}

// request calls requestUnlock when another caller waits, when the lock is lost, or when the node
// leaves. It returns at the latest when the lock has ended.
func request(held *mortise.Lock, over context.Context, requestUnlock func()) {
	select {
	case <-held.Wanted():
	case <-over.Done():
	}
	if !errors.Is(held.Err(), mortise.ErrUnlocked) {
		requestUnlock()
	}
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
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	if err := held.Unlock(ctx); err != nil {
		return fmt.Errorf("mortisetusd: unlock %q: %w", l.key, err)
	}
	return nil
}
