package locker

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"github.com/mortise-lock/mortise"
)

// Local is a Locker whose locks are those of this value: for tests, for programs with one instance,
// and for fallbacks. The zero value is ready. It is safe for concurrent use; it must not be copied.
//
// Callers of one key are served in the order in which they came. One whose context ends leaves the
// queue at once, and a lock that reaches it in that moment goes on to the next. A local lock cannot
// be lost: the context of fn ends with the caller's, or when fn has returned, with
// [mortise.ErrUnlocked] as its cause. A call with the context of fn, for the key that it runs
// under, enters the lock again, as with a node, and the last to return unlocks. Unlike a node, a
// Local does not find callers that wait for each other in a circle: their contexts end that. A key
// that nobody uses costs nothing.
//
// Tokens rise, over all keys, from 1 in each Local. So they are below every token of a node, on
// purpose: a resource that has seen the token of a node refuses the holder of a Local, and no Local
// can leave behind a token above which no node ever comes.
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

// Do waits its turn for key, runs fn and unlocks, also if fn panics. It returns fn's error; or,
// without having run fn, mortise.ErrBadKey, or an error that wraps the context's and says how many
// were ahead.
func (l *Local) Do(ctx context.Context, key string, fn func(ctx context.Context, token mortise.Token) error) error {
	h, err := l.enter(ctx, key)
	if err != nil {
		return err
	}
	defer l.exit(h)
	ctx, end := context.WithCancelCause(context.WithValue(ctx, insideKey{}, &inside{h, insideOf(ctx)}))
	defer end(mortise.ErrUnlocked) // before the unlock: whoever comes next finds this context ended
	return fn(mortise.ContextWithToken(ctx, h.token), h.token)
}

// hold is a lock that is held, and how many calls are in it.
type hold struct {
	local *Local
	key   string
	token mortise.Token
	calls int // under local.mu; 0: it is over
}

// insideKey is the key under which a context carries the holds under which it stands.
type insideKey struct{}

// inside is a hold under which a context stands, and those around it.
type inside struct {
	*hold
	outer *inside
}

func insideOf(ctx context.Context) *inside {
	in, _ := ctx.Value(insideKey{}).(*inside)
	return in
}

// enter returns the hold of key under which ctx stands, with one call more in it, or else one of
// its own.
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

// again counts one call more, unless the hold is over: its context may have been kept.
func (h *hold) again() bool {
	h.local.mu.Lock()
	defer h.local.mu.Unlock()
	if h.calls == 0 {
		return false
	}
	h.calls++
	return true
}

// exit counts one call less. The last one unlocks.
func (l *Local) exit(h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.calls--; h.calls == 0 {
		l.pass(h.key)
	}
}

// lock waits its turn, and returns the token of a lock that is held, or an error.
func (l *Local) lock(ctx context.Context, key string) (mortise.Token, error) {
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
	return 0, fmt.Errorf("locker: lock %q: %w (when this call queued, it was held and %d were waiting)", key,
		ended(ctx), ahead-1)
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
