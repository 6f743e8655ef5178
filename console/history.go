package console

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise"
)

// History is what happened on one node in the last hour, for the page: grants, waits and losses,
// how long its calls waited and held, and how close its lease came to its end. Give its hooks to
// the node, and the History to the handler:
//
//	history := console.NewHistory()
//	node, err := mortise.Start(ctx, mortise.Config{Hooks: history.Hooks()})
//	...
//	handler := console.New(node, console.Options{History: history})
//
// A History takes about 115 KB, whatever happens. It starts no goroutine and is not closed: hooks
// count the events, and the page reads the counts. A hook takes less than a microsecond and
// allocates nothing. But hooks of any kind add four allocations to each lock of a node.
//
// It counts the calls of its own node only, because no instance has the figures of all. Elections,
// package tick and requests with the label mortise.purpose wait and hold long by design: of them
// only grants and losses are counted. Losses that the node does not report because hooks were too
// slow (Status.HooksDropped) are missing. It is safe for concurrent use, and serves one node.
type History struct {
	status atomic.Pointer[func() mortise.Status] // of the node; nil until New

	mu   sync.Mutex // guards the fields below; never held across a wait
	hour hour
	last *past // computed at `when`; never changed
	when time.Time
}

// pastFresh is how long computed figures are used again.
const pastFresh = time.Second

// NewHistory returns an empty History that begins now.
func NewHistory() *History {
	h := &History{}
	h.hour.begin(time.Now())
	return h
}

// Hooks returns the value for Config.Hooks. Use HooksWith if the node has other hooks, too.
func (h *History) Hooks() *mortise.Hooks { return h.HooksWith(nil) }

// HooksWith is like Hooks, and the returned hooks also call those of other, for example the hooks
// of mortiseotel, and return its tags. HooksWith does not change other. Nil means none.
func (h *History) HooksWith(other *mortise.Hooks) *mortise.Hooks {
	if other == nil {
		other = &mortise.Hooks{}
	}
	all := *other
	acquired, unlocked, lost := all.Acquired, all.Unlocked, all.Lost
	all.Acquired = func(ctx context.Context, e mortise.LockEvent) (tag any) {
		h.acquired(time.Now(), &e)
		if acquired != nil {
			tag = acquired(ctx, e)
		}
		return tag
	}
	all.Unlocked = func(ctx context.Context, e mortise.LockEvent) {
		h.unlocked(time.Now(), &e)
		if unlocked != nil {
			unlocked(ctx, e)
		}
	}
	all.Lost = func(e mortise.LockEvent) {
		h.lost(time.Now(), &e)
		if lost != nil {
			lost(e)
		}
	}
	all.Node = h.then(all.Node)
	return &all
}

func (h *History) acquired(now time.Time, e *mortise.LockEvent) {
	granted, waited := e.Outcome == mortise.OutcomeGranted, hasWaited(e)
	if !granted && !waited {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.hour.at(now)
	if granted {
		increase(&s.grants)
	}
	if e.Purpose != "" {
		return
	}
	if waited {
		increase(&s.waits)
	}
	s.wait.add(e.Took)
}

// hasWaited reports whether a call stood in the queue, however it ended.
func hasWaited(e *mortise.LockEvent) bool {
	switch e.Outcome {
	case mortise.OutcomeHeld, mortise.OutcomeNotReady, // of a Try
		mortise.OutcomeQueueFull, mortise.OutcomeDeadlock:
		return false
	}
	return e.Behind != nil
}

func (h *History) unlocked(now time.Time, e *mortise.LockEvent) {
	if e.Purpose != "" || e.Outcome == mortise.OutcomeLeft || e.Outcome == mortise.OutcomeLost {
		return // other handles hold the lock, or Lost has counted it
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hour.at(now).hold.add(e.Held)
}

func (h *History) lost(now time.Time, e *mortise.LockEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.hour.at(now)
	if increase(&s.losses); e.Purpose == "" {
		s.hold.add(e.Held)
	}
}

// then returns a hook that notes the lease and then calls next. The node calls this hook once at a
// time, so a later status is never noted before an earlier one.
func (h *History) then(next func(mortise.NodeEvent)) func(mortise.NodeEvent) {
	return func(e mortise.NodeEvent) {
		if status := h.status.Load(); status != nil {
			left := (*status)().LeaseFor
			h.leased(time.Now(), left)
		}
		if next != nil {
			next(e)
		}
	}
}

func (h *History) leased(now time.Time, left time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hour.leased(now, left)
}

// past returns the figures of the last hour, at most a second old, so that many viewers do not
// delay the hooks. A nil History has none.
func (h *History) past(now time.Time) *past {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	if h.last != nil && now.Sub(h.when) < pastFresh {
		defer h.mu.Unlock()
		return h.last
	}
	copied := h.hour // the hooks wait for the copy only
	h.mu.Unlock()
	p := pastOf(&copied, now)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last, h.when = p, now
	return p
}
