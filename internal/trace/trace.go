package trace

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// Hooks are the user's functions for the events of locks. Each may be nil.
type Hooks struct {
	Mark     func(ctx context.Context) []byte             // the trace parent to send with the request
	Acquired func(ctx context.Context, e Event) (tag any) // on the caller's goroutine
	Unlocked func(ctx context.Context, e Event)           // on the caller's goroutine
	Lost     func(e Event)                                // on the queue's goroutine
	Leaked   func(e Event)                                // on the queue's goroutine
}

func (h *Hooks) listen() bool {
	return h.Mark != nil || h.Acquired != nil || h.Unlocked != nil || h.Lost != nil || h.Leaked != nil
}

// Asked is what a caller asks for, as observers see it.
type Asked struct {
	Key     string // the first in ascending order
	Keys    int    // the number of keys
	Kind    string // of the request: exclusive, shared and so on
	Try     bool
	Purpose string // for which long waits and holds are normal; empty for none
}

// Event is what happened to a call or a lock.
type Event struct {
	Asked
	End   End
	Loss  client.Loss // of Lost
	Err   error       // of the call, or of the lock that was lost
	Token lockfsm.Token
	Where string // of Leaked: the function, file and line that asked for the lock
	Tag   any    // what Hooks.Acquired returned for the lock

	Took    time.Duration     // the call
	Held    time.Duration     // until now
	Behind  *client.HeldError // the holder that was in the way; nil if there is none or it is unknown
	Waiting int               // how many waited before the call; -1 if unknown
}

// End is the kind of end that an Event reports.
type End uint8

// The ends of an Acquire, of a release, and of a lock that was not released.
const (
	Granted End = iota
	Entered     // another handle of a lock that was already held
	Refused     // Err is why
	Confirmed
	Soon        // released without waiting for the confirmation
	Unconfirmed // released, but not confirmed: Err is why
	Detached
	Lapsed
	Left    // the handle is released, and others still have the lock
	Gone    // nothing to release: the lock was lost before
	Stopped // by the end of the node
	Lost
	Leaked
)

// Config has the observers of a node, and what they need.
type Config struct {
	Hooks   Hooks             // of locks
	Queued  bool              // there are other hooks, which use Later
	History *history.Recorder // nil for no recording
	Clock   clock.Clock
	Logger  *slog.Logger
	Spawn   func(func()) bool // runs a function on a goroutine for which the node's Close waits
}

// Tracer passes events to the observers of one node. A nil Tracer has none.
type Tracer struct {
	config Config
	locks  bool // a hook for locks is set
	queue  hookQueue
}

// New returns the tracer of a configuration, or nil if it has no observers.
func New(c Config) *Tracer {
	locks := c.Hooks.listen()
	if !locks && !c.Queued && c.History == nil {
		return nil
	}
	return &Tracer{config: c, locks: locks, queue: hookQueue{logger: c.Logger, clock: c.Clock}}
}

// History returns the recorder, or nil.
func (t *Tracer) History() *history.Recorder {
	if t == nil {
		return nil
	}
	return t.config.History
}

// Later calls a hook on the goroutine of the queue.
func (t *Tracer) Later(f func()) {
	if t != nil {
		t.queue.later(f)
	}
}

// Dropped returns how many calls of hooks were dropped because hooks were too slow.
func (t *Tracer) Dropped() uint64 {
	if t == nil {
		return 0
	}
	return t.queue.lost()
}

// Close calls the queued hooks. It gives up on an observer that has not returned after 5 s, with an
// error that names it.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	return errors.Join(t.config.History.Close(), t.queue.close())
}
