package trace

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// What a user of hooks may count on.
const (
	MostWaiting = 1024            // calls that may wait for a slow hook
	CloseLimit  = 5 * time.Second // how long Close waits for one
)

const loudEvery = time.Minute // between two lines about the same fault

// ErrHangs is what Close returns if a hook does not.
var ErrHangs = errors.New("mortise: Config.Hooks: a function has not returned for 5 s; its goroutine ends when it does")

// hookQueue calls hooks and recovers their panics. It calls them on the caller's goroutine, or
// beside it on a goroutine that runs only while calls wait.
type hookQueue struct {
	logger *slog.Logger
	clock  clock.Clock

	mu      sync.Mutex // guards the rest; never held across a wait
	queue   []func()
	working bool
	closed  bool
	idle    chan struct{} // to be closed when the goroutine ends; nil while no close waits for that
	dropped uint64        // since the beginning
	unsaid  uint64        // of these, since the last line about it
	drops   clock.Time    // of the last line about what was dropped; zero: there was none
	panics  clock.Time    // of the last line about a panic; zero: there was none
}

// later has f called beside the caller, after all that was handed over before. It never waits: if
// too many calls wait already, it drops f.
func (q *hookQueue) later(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return
	case len(q.queue) >= MostWaiting:
		q.dropped++
		q.unsaid++
		return
	}
	q.queue = append(q.queue, f)
	if !q.working {
		q.working = true
		go q.work()
	}
}

// work calls what waits until nothing does. A hook that ends its goroutine (runtime.Goexit) ends
// this one, and another takes its place.
func (q *hookQueue) work() {
	over := false
	defer func() {
		if !over {
			go q.work()
		}
	}()
	for {
		q.mu.Lock()
		if len(q.queue) == 0 {
			q.working, q.queue, over = false, nil, true
			if q.idle != nil {
				close(q.idle)
			}
			q.mu.Unlock()
			return
		}
		f := q.queue[0]
		q.queue[0] = nil
		q.queue = q.queue[1:]
		q.mu.Unlock()
		q.call(f)
		q.complain()
	}
}

// call calls f here and now, and lets no panic out of it.
func (q *hookQueue) call(f func()) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		q.mu.Lock()
		now := q.clock.Now()
		loud := q.panics == 0 || now.Sub(q.panics) >= loudEvery
		if loud {
			q.panics = now
		}
		q.mu.Unlock()
		if loud {
			q.logger.Error("a function of Config.Hooks panicked; it is called again next time",
				"panic", p, "stack", string(debug.Stack()))
		}
	}()
	f()
}

// complain says, once in a while, that hooks are too slow.
func (q *hookQueue) complain() {
	q.mu.Lock()
	now, lost := q.clock.Now(), q.unsaid
	if lost == 0 || q.drops != 0 && now.Sub(q.drops) < loudEvery {
		q.mu.Unlock()
		return
	}
	q.drops, q.unsaid = now, 0
	q.mu.Unlock()
	q.logger.Warn("the functions of Config.Hooks are too slow: they were not told everything", "dropped", lost)
}

// lost returns how many calls were dropped.
func (q *hookQueue) lost() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// close waits until all that was handed over was told, but not for ever. Nothing is taken any more.
func (q *hookQueue) close() error {
	q.mu.Lock()
	q.closed = true
	if !q.working {
		q.mu.Unlock()
		return nil
	}
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.mu.Unlock()
	limit := time.NewTimer(CloseLimit)
	defer limit.Stop()
	select {
	case <-idle:
		return nil
	case <-limit.C:
	}
	q.mu.Lock()
	q.queue = nil // it ends with the call under way
	q.mu.Unlock()
	return ErrHangs
}
