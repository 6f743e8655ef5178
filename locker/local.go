package locker

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"github.com/mortise-lock/mortise"
)

// Local is a Locker whose locks are those of this value: for tests, for programs with one instance, and for fallbacks. The zero value is
// ready. It is safe for concurrent use; it must not be copied.
//
// Callers of one key are served in the order in which they came. One whose context ends leaves the queue at once, and a lock that reaches it
// in that moment goes on to the next. A local lock cannot be lost: the context of fn ends with the caller's, or when fn has returned, with
// [mortise.ErrUnlocked] as its cause. There is no re-entry. A key that nobody uses costs nothing.
//
// Tokens rise, over all keys, from 1 in each Local. So they are below every token of a node, on purpose: a resource that has seen the token
// of a node refuses the holder of a Local, and no Local can leave behind a token above which no node ever comes.
type Local struct {
	mu    sync.Mutex
	keys  map[string]*list.List // of *waiter, the longest waiting first; a key that is here is held
	token mortise.Token         // the last that was granted
}

// waiter is a call that has to wait.
type waiter struct {
	granted chan struct{} // closed under mu, when the lock is this call's
	token   mortise.Token // written before that
}

// Do waits its turn for key, runs fn and unlocks, also if fn panics. It returns fn's error; or, without having run fn, mortise.ErrBadKey, or an
// error that wraps the context's and says how many were ahead.
func (l *Local) Do(ctx context.Context, key string, fn func(ctx context.Context, token mortise.Token) error) error {
	token, err := l.lock(ctx, key)
	if err != nil {
		return err
	}
	defer l.unlock(key)
	held, end := context.WithCancelCause(mortise.ContextWithToken(ctx, token))
	defer end(mortise.ErrUnlocked) // before the unlock: whoever comes next finds this context ended
	return fn(held, token)
}

// lock returns the token of a lock that is held, or an error.
func (l *Local) lock(ctx context.Context, key string) (mortise.Token, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, fmt.Errorf("locker: lock %q: %w", key, ended(ctx))
	}
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
	w := &waiter{granted: make(chan struct{})}
	place := queue.PushBack(w)
	ahead := queue.Len()
	l.mu.Unlock()

	select {
	case <-w.granted:
	case <-ctx.Done():
	}
	if ctx.Err() == nil {
		return w.token, nil
	}
	l.leave(key, place)
	return 0, fmt.Errorf("locker: lock %q: %w (when this call queued, it was held and %d were waiting)", key, ended(ctx), ahead-1)
}

// leave takes a waiter out of the queue of key. If the lock has reached it, it goes on to the next.
func (l *Local) leave(key string, place *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-place.Value.(*waiter).granted:
		l.pass(key)
	default:
		l.keys[key].Remove(place)
	}
}

func (l *Local) unlock(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pass(key)
}

// pass gives the lock of key, which is held, to the next waiter, or forgets the key.
func (l *Local) pass(key string) {
	queue := l.keys[key]
	next := queue.Front()
	if next == nil {
		delete(l.keys, key)
		return
	}
	w := queue.Remove(next).(*waiter)
	l.token++
	w.token = l.token
	close(w.granted)
}
