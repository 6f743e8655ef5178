package keep

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/hold"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/locker"
)

// Acquirer acquires locks. *mortise.Node and *mortise.Session implement it. It must be safe for
// concurrent use.
type Acquirer = locker.Acquirer[mortise.Request, *mortise.Lock]

// Options configure Run. The zero value is usable.
type Options struct {
	// Backoff is the pause after the function failed or the node was overloaded. The pause doubles
	// with every consecutive failure, up to MaxBackoff. After a hold of MaxBackoff or longer, the
	// next pause is Backoff. Zero or less means one second.
	Backoff time.Duration

	// MaxBackoff limits the pause. Zero or less means 1 min, or Backoff if that is longer.
	MaxBackoff time.Duration

	// Report is called on the goroutine of Run, after Run has unlocked, with each error that does
	// not end Run. If the function failed, this is its error. If the hold ended before the function
	// returned, this is the reason, such as mortise.ErrLost, wrapped together with the function's
	// own error. If the lock was not granted, this is the reason, and token is 0. If Report is nil,
	// these errors are dropped.
	Report func(token mortise.Token, err error)
}

// labelledValue is the length of the longest value of a request to which Run adds a label. JSON
// encodes a value in four thirds of its length.
const labelledValue = 700

// Run acquires the lock of a request, runs fn while it is held, and repeats this. It returns
//
//   - nil, if fn returned nil and the context of fn had not ended: the work is done;
//   - the cause of ctx if ctx has ended, wrapped together with the error of fn, if any; Run has
//     then unlocked;
//   - mortise.ErrLeaving or ErrClosed if the node leaves or is closed, and other permanent errors
//     of Acquire, such as mortise.ErrBadRequest, and mortise.ErrHeld if the request has Try.
//
// The context of fn ends with the hold, with ctx, or when the node leaves. fn must then end what it
// has started and return. If only the hold has ended, Run acquires the lock again. That includes
// the end by Request.MaxHold, and by Request.MaxIdle when fn has not called Lock.Beat. With
// Request.JeopardyGrace, Run first waits until the doubt ends. If the hold is good again, Run calls
// fn again, with the same lock. If fn returns an error before its context has ended, Run unlocks,
// calls [Options].Report, and acquires the lock again after a pause, which ends early only with
// ctx.
//
// To let other requests go first, fn ends its work, calls Unlock on the lock and returns: Run then
// waits at the end of the queue. With Request.Notice, Lock.Wanted tells when. If fn panics or calls
// runtime.Goexit, Run unlocks first. Run waits for the confirmation of a release for at most 5 s.
func Run(ctx context.Context, by Acquirer, r mortise.Request, o Options,
	fn func(ctx context.Context, l *mortise.Lock) error) error {
	switch {
	case by == nil:
		return errors.New("keep: the node is nil")
	case len(r.Labels) == 0 && len(r.Value) <= labelledValue:
		r.Labels = shown.Purpose(shown.Job)
	}
	return hold.Run(ctx, hold.Options(o).WithDefaults(),
		func(ctx context.Context) (*mortise.Lock, error) { return by.Acquire(ctx, r) }, fn)
}
