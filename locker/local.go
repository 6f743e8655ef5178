package locker

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Local is a Locker with locks in memory, for tests, for programs with one instance, and for
// fallbacks. The zero value is ready to use. It must not be copied.
//
// Callers of one key are served in order. A caller whose context ends leaves the queue
// immediately. A lock of a Local cannot be lost: the context of fn ends only with the caller's
// context, or when fn has returned, with [ErrUnlocked] as its cause. A nested call with
// the context of fn and the same key gets the lock at once, as with a node. The lock is unlocked
// when all these calls have returned. A Local does not detect deadlocks, so they last until a
// context ends.
//
// The tokens of a Local increase across all its keys, beginning at 1. They are lower than every
// token of a node. So a resource that has seen a token of a node refuses the holder of a Local.
// But a resource that has seen only tokens of a Local accepts the holder of a node.
type Local struct {
	mu    sync.Mutex
	keys  map[string]*list.List // for each held key, the queue of its waiters
	token Token                 // the last token that was granted
}

// waiter receives its token, under mu, when it gets the lock. It has room for it.
type waiter chan Token

// Do waits for the lock of key, runs fn and unlocks, even if fn panics. It returns the error of fn.
// If fn has not run, the error is ErrBadKey or wraps the context's error.
func (l *Local) Do(ctx context.Context, key string, fn func(ctx context.Context, token Token) error) error {
	h, err := l.enter(ctx, key)
	if err != nil {
		return err
	}
	defer l.exit(h)
	ctx, end := context.WithCancelCause(context.WithValue(ctx, insideKey{}, &inside{h, insideOf(ctx)}))
	defer end(ErrUnlocked) // before the next holder runs
	return fn(ContextWithToken(ctx, h.token), h.token)
}

type hold struct {
	local *Local
	key   string
	token Token
	calls int // calls that have not returned, guarded by local.mu; zero means that the hold has ended
}

type insideKey struct{}

type inside struct {
	*hold
	outer *inside
}

func insideOf(ctx context.Context) *inside {
	in, _ := ctx.Value(insideKey{}).(*inside)
	return in
}

func (l *Local) enter(ctx context.Context, key string) (*hold, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("locker: lock %q: %w", key, ended(ctx))
	}
	for in := insideOf(ctx); in != nil; in = in.outer {
		if in.local == l && in.key == key && in.again() {
			return in.hold, nil
		}
	}
	token, err := l.lock(ctx, key)
	if err != nil {
		return nil, err
	}
	return &hold{local: l, key: key, token: token, calls: 1}, nil
}

// again counts a further call in h.calls, unless the hold has ended. It reports whether it did
// so.
func (h *hold) again() bool {
	h.local.mu.Lock()
	defer h.local.mu.Unlock()
	if h.calls == 0 {
		return false
	}
	h.calls++
	return true
}

func (l *Local) exit(h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.calls--; h.calls == 0 {
		l.pass(h.key)
	}
}

func (l *Local) lock(ctx context.Context, key string) (Token, error) {
	l.mu.Lock()
	queue, taken := l.keys[key]
	if !taken {
		defer l.mu.Unlock()
		if l.keys == nil {
			l.keys = map[string]*list.List{}
		}
		l.keys[key] = list.New()
		l.token++
		return l.token, nil
	}
	w := make(waiter, 1)
	place := queue.PushBack(w)
	ahead := queue.Len()
	l.mu.Unlock()

	select {
	case token := <-w:
		if ctx.Err() == nil {
			return token, nil
		}
		w <- token // leave passes it on
	case <-ctx.Done():
	}
	l.leave(key, place)
	return 0, fmt.Errorf("locker: lock %q: %w (when this call queued, it was held and %d were waiting)", key,
		ended(ctx), ahead-1)
}

func (l *Local) leave(key string, place *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-place.Value.(waiter):
		l.pass(key)
	default:
		l.keys[key].Remove(place)
	}
}

func (l *Local) pass(key string) {
	queue := l.keys[key]
	next := queue.Front()
	if next == nil {
		delete(l.keys, key)
		return
	}
	l.token++
	queue.Remove(next).(waiter) <- l.token
}

const maxKeyBytes = 512

func checkKey(key string) error {
	if key == "" || len(key) > maxKeyBytes || !utf8.ValidString(key) {
		return badKey(key)
	}
	for _, r := range key {
		if unicode.IsControl(r) {
			return badKey(key)
		}
	}
	return nil
}

func badKey(key string) error {
	return fmt.Errorf("%w: %.64q: want 1 to %d bytes of UTF-8 without control characters", ErrBadKey, key, maxKeyBytes)
}

// ended returns an error that wraps the error and the cause of ctx, which has ended.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
