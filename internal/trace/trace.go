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

// Hooks are what a user wants to hear of locks. Every one may be nil.
type Hooks struct {
	Mark     func(ctx context.Context) []byte             // what is to travel with the request
	Acquired func(ctx context.Context, e Event) (tag any) // on the caller's goroutine
	Unlocked func(ctx context.Context, e Event)           // on the caller's goroutine
	Lost     func(e Event)                                // on the queue's
	Leaked   func(e Event)                                // on the queue's
}

// listen reports whether one of them is there.
func (h *Hooks) listen() bool {
	return h.Mark != nil || h.Acquired != nil || h.Unlocked != nil || h.Lost != nil || h.Leaked != nil
}

// Asked is what a caller asks for, in the words of its observers.
type Asked struct {
	Key     string // of several the first in ascending order
	Keys    int    // how many
	Kind    string // of the request: exclusive, shared and so on
	Try     bool
	Purpose string // for which long waits and holds are normal; empty: none
}

// Event is what has become of a call or of a lock.
type Event struct {
	Asked
	End   End
	Loss  client.Loss // of Lost
	Err   error       // of the call, or of the lock that was lost
	Token lockfsm.Token
	Where string // of Leaked: the function, file and line that has asked for the lock
	Tag   any    // what Hooks.Acquired has returned for the lock

	Took    time.Duration     // the call
	Held    time.Duration     // until now
	Behind  *client.HeldError // the holder that was in the way; nil: none, or it is not known
	Waiting int               // how many waited before the call; -1: it is not known
}

// End says what kind of end an Event tells of.
type End uint8

// The ends of an Acquire, of a release, and of a lock that was not released.
const (
	Granted End = iota
	Entered     // a lock that was held already, by another handle
	Refused     // Err says why
	Confirmed
	Soon        // released without waiting for the confirmation
	Unconfirmed // released, and the confirmation has not come: Err says why
	Detached
	Lapsed
	Left    // the handle is gone, and others have the lock
	Gone    // there was nothing to release any more: the lock was lost before
	Stopped // by the end of the node
	Lost
	Leaked
)

// Config has the observers of a node, and what they need.
type Config struct {
	Hooks   Hooks             // of locks
	Queued  bool              // there are other hooks, which use Later
	History *history.Recorder // nil: nothing is recorded
	Clock   clock.Clock
	Logger  *slog.Logger
	Spawn   func(func()) bool // runs a function on a goroutine for which the node's Close waits
}

// Tracer tells the observers of one node. A nil Tracer has none.
type Tracer struct {
	config Config
	locks  bool // a hook hears of locks
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

// Later has a hook called on the goroutine of the queue.
func (t *Tracer) Later(f func()) {
	if t != nil {
		t.queue.later(f)
	}
}

// Dropped returns how many calls of hooks were dropped because hooks are too slow.
func (t *Tracer) Dropped() uint64 {
	if t == nil {
		return 0
	}
	return t.queue.lost()
}

// Close calls what still waits. It gives up on an observer that has not returned after 5 s, and
// returns an error that names it.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	return errors.Join(t.config.History.Close(), t.queue.close())
}
