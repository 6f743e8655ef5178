package trace

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// Users of hooks may rely on these limits.
const (
	MostWaiting = 1024            // the largest number of queued calls of hooks
	CloseLimit  = 5 * time.Second // how long Close waits for a hook
)

const loudEvery = time.Minute // interval between two log lines about the same error

// ErrHangs is returned by Close if a hook does not return.
var ErrHangs = errors.New("mortise: Config.Hooks: a function has not returned for 5 s; its goroutine ends when it does")

// hookQueue calls hooks and recovers their panics. It calls them on the caller's goroutine, or on a
// goroutine that runs only while calls are queued.
type hookQueue struct {
	logger *slog.Logger
	clock  clock.Clock

	mu      sync.Mutex // guards the fields below; never held across a wait
	queue   []func()
	working bool
	closed  bool
	idle    chan struct{} // nil until Close waits; closed when the goroutine ends
	dropped uint64
	unsaid  uint64     // dropped calls that have not been logged
	drops   clock.Time // time of the last log line about dropped calls; zero if none
	panics  clock.Time // time of the last log line about a panic; zero if none
}

// This method appends f to the queue. It never blocks. It drops f if the queue is full or closed.
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

// work calls the queued functions until the queue is empty. If a hook ends the goroutine
// (runtime.Goexit), work starts another goroutine.
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

func (q *hookQueue) complain() {
	q.mu.Lock()
	now, lost := q.clock.Now(), q.unsaid
	if lost == 0 || q.drops != 0 && now.Sub(q.drops) < loudEvery {
		q.mu.Unlock()
		return
	}
	q.drops, q.unsaid = now, 0
	q.mu.Unlock()
	q.logger.Warn("the functions of Config.Hooks are too slow: calls were dropped", "dropped", lost)
}

func (q *hookQueue) lost() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

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
	q.queue = nil // the goroutine ends after the current call
	q.mu.Unlock()
	return ErrHangs
}
