package mortise

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

const (
	hooksWaiting   = 1024            // calls that may wait for a slow hook
	hooksCloseMax  = 5 * time.Second // how long Close waits for one
	hooksLoudEvery = time.Minute     // between two lines about the same fault
)

// errHookHangs is what Close returns if a hook does not.
var errHookHangs = errors.New("mortise: Config.Hooks: a function has not returned for 5 s; its goroutine ends when it does")

// teller calls hooks: guarded, on the goroutine of who has something to tell, or beside it, on a goroutine that it has only while there is something
// to do.
type teller struct {
	hooks  Hooks
	locks  bool // a hook hears of locks
	logger *slog.Logger
	clock  clock.Clock

	mu      sync.Mutex // guards the rest; never held across a wait
	queue   []func()
	working bool
	closed  bool
	idle    chan struct{} // of close: to be closed when the goroutine ends; nil: nobody waits
	dropped uint64        // since the beginning
	unsaid  uint64        // of these, since the last line about it
	drops   clock.Time    // of the last line about what was dropped; zero: there was none
	panics  clock.Time    // of the last line about a panic; zero: there was none
}

// newTeller returns who calls the hooks of a configuration, or nil if there are none.
func newTeller(c Config, e env) *teller {
	if c.Hooks == nil {
		return nil
	}
	h := c.Hooks
	locks := h.Mark != nil || h.Acquired != nil || h.Unlocked != nil || h.Lost != nil || h.Leaked != nil
	return &teller{hooks: *h, locks: locks, logger: c.Logger, clock: e.clock}
}

// later has f called beside the caller, behind all that was handed over before. It never waits: it drops f if too much waits already.
func (t *teller) later(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return
	case len(t.queue) >= hooksWaiting:
		t.dropped++
		t.unsaid++
		return
	}
	t.queue = append(t.queue, f)
	if !t.working {
		t.working = true
		go t.work()
	}
}

// work calls what waits until nothing does. A hook that ends its goroutine (runtime.Goexit) ends this one, and another goes on.
func (t *teller) work() {
	over := false
	defer func() {
		if !over {
			go t.work()
		}
	}()
	for {
		t.mu.Lock()
		if len(t.queue) == 0 {
			t.working, t.queue, over = false, nil, true
			if t.idle != nil {
				close(t.idle)
			}
			t.mu.Unlock()
			return
		}
		f := t.queue[0]
		t.queue[0] = nil
		t.queue = t.queue[1:]
		t.mu.Unlock()
		t.call(f)
		t.complain()
	}
}

// call calls f here and now, and lets no panic out of it.
func (t *teller) call(f func()) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		t.mu.Lock()
		now := t.clock.Now()
		loud := t.panics == 0 || now.Sub(t.panics) >= hooksLoudEvery
		if loud {
			t.panics = now
		}
		t.mu.Unlock()
		if loud {
			t.logger.Error("a function of Config.Hooks panicked; it is called again next time", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	f()
}

// complain says, once in a while, that hooks are too slow.
func (t *teller) complain() {
	t.mu.Lock()
	now, lost := t.clock.Now(), t.unsaid
	if lost == 0 || t.drops != 0 && now.Sub(t.drops) < hooksLoudEvery {
		t.mu.Unlock()
		return
	}
	t.drops, t.unsaid = now, 0
	t.mu.Unlock()
	t.logger.Warn("the functions of Config.Hooks are too slow: they were not told everything", "dropped", lost)
}

// lost returns how many calls were dropped.
func (t *teller) lost() uint64 {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dropped
}

// close waits until all that was handed over was told, but not for ever. Nothing is taken any more.
func (t *teller) close() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	t.closed = true
	if !t.working {
		t.mu.Unlock()
		return nil
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	limit := time.NewTimer(hooksCloseMax)
	defer limit.Stop()
	select {
	case <-idle:
		return nil
	case <-limit.C:
	}
	t.mu.Lock()
	t.queue = nil // it ends with the call under way
	t.mu.Unlock()
	return errHookHangs
}
