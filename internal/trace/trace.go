package trace

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/modes"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// Hooks are the user's functions for the events of locks. Each may be nil. Lost, InDoubt and Leaked
// run on the queue's goroutine, the others on the caller's goroutine.
type Hooks struct {
	Mark     func(ctx context.Context) []byte // returns the request's trace parent
	Acquired func(ctx context.Context, e Event) (tag any)
	Unlocked func(ctx context.Context, e Event)
	Lost     func(e Event)
	InDoubt  func(e Event) // also called when the lock is good again
	Leaked   func(e Event)
}

func (h *Hooks) listen() bool {
	return h.Mark != nil || h.Acquired != nil || h.Unlocked != nil || h.Lost != nil || h.InDoubt != nil || h.Leaked != nil
}

// Asked describes a requested lock to observers.
type Asked struct {
	Part    modes.Part
	Also    any    // the further parts; only the hooks read them
	Purpose string // purpose for which long waits and holds are normal; empty means none
}

// Event is an event of a call or a lock.
type Event struct {
	Asked
	End   End
	Loss  client.Loss
	Err   error // error of the call, or the reason why the lock was lost
	Token lockfsm.Token
	Where string // for Leaked: the function, file and line that requested the lock
	Tag   any    // returned by Hooks.Acquired

	Took    time.Duration
	Held    time.Duration     // duration of the hold until now
	Behind  *client.HeldError // holder for which the call waited; nil if none or unknown
	Waiting int               // requests that already waited; -1 if unknown
}

// End is the kind of end that an Event reports.
type End uint8

// The ends of an Acquire, of a release, and of a lock that was not released.
const (
	Granted End = iota
	Entered     // another handle of a lock that was already held
	Refused     // Err is the reason
	Confirmed
	Soon        // released without waiting for the confirmation
	Unconfirmed // released, but not confirmed; Err is the reason
	Detached
	Left    // the lock still has other handles
	Gone    // the lock was lost before the release
	Stopped // the node has ended
	Lost
	InDoubt
	Regained
	Leaked
)

// Config contains the observers of a node, and their dependencies.
type Config struct {
	Hooks   Hooks
	Queued  bool              // the node also calls hooks through Tracer.Later
	History *history.Recorder // nil means no recording
	Clock   clock.Clock
	Logger  *slog.Logger
	Spawn   func(func()) bool // runs a function on a goroutine for which the node's Close waits
}

// Tracer passes events to the observers of one node. A nil Tracer has no observers.
type Tracer struct {
	config Config
	locks  bool // a hook for locks is set
	queue  hookQueue
	leaks  leaks
}

// New returns the tracer of a configuration, or nil if the configuration has no observers.
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

// Later queues f, which calls a hook. The goroutine of the queue runs f.
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

// Close closes the history and calls the queued hooks. It waits at most 5 s for the history, and
// then at most 5 s for the hooks. The error says what has failed.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	return errors.Join(t.config.History.Close(), t.queue.close())
}
