package hold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
)

// ReleaseTime limits how long Run waits for the confirmation of a release. Without the wait, a
// process that exits directly after Run could end before the release is sent.
const ReleaseTime = 5 * time.Second

// Hold is a lock that is held. *mortise.Lock implements it.
type Hold interface {
	Token() mortise.Token
	Err() error
	Context(parent context.Context) context.Context
	Regain(ctx context.Context) error
	Unlock(ctx context.Context) error
}

// Run acquires a hold, runs fn with it and a context that ends with it, releases it, and repeats
// this. It returns nil if fn returned nil before its context ended, the cause of ctx if ctx has
// ended, and errors of acquire that a retry cannot cure. The options must have their defaults.
func Run[H Hold](ctx context.Context, o Options, acquire func(context.Context) (H, error),
	fn func(context.Context, H) error) error {
	row := backoff{first: o.Backoff, most: o.MaxBackoff}
	for {
		t := once(ctx, acquire, fn)
		if t.end {
			return t.err
		}
		o.Report(t.token, t.err)
		if t.failed {
			sleep(ctx, row.next(t.lasted))
		}
	}
}

// turn is the result of one hold, or of one attempt.
type turn struct {
	token  mortise.Token // 0 if nothing was held
	lasted time.Duration // time from the grant to the release
	err    error
	end    bool // Run returns err
	failed bool // Run pauses before the next attempt
}

func once[H Hold](ctx context.Context, acquire func(context.Context) (H, error),
	fn func(context.Context, H) error) turn {
	h, err := acquire(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return turn{end: true, err: context.Cause(ctx)}
	case err != nil:
		return turn{end: !passing(err), failed: true, err: err}
	}
	began := time.Now()
	over, err := Use(ctx, h, fn)
	t := turn{token: h.Token(), lasted: time.Since(began)}
	switch {
	case over == nil:
		t.end, t.failed, t.err = err == nil, true, err
	case ctx.Err() != nil:
		t.end, t.err = true, causeText(context.Cause(ctx), err)
	default:
		t.err = causeText(over, err)
	}
	return t
}

// Use runs fn with a context that ends with the hold, and releases the hold, even if fn panics. It
// returns the error of fn. over is the reason why the hold or its context ended before fn returned,
// or nil. If the hold is lost before, fn is not called. If a hold in doubt is good again after fn
// has returned, Use runs fn once more.
func Use[H Hold](ctx context.Context, h H, fn func(context.Context, H) error) (over, err error) {
	ctx, end := context.WithCancelCause(ctx)
	defer unlocks(end) // if the lock was entered again, Unlock does not end its context
	defer func() {
		confirmed, cancel := context.WithTimeout(context.WithoutCancel(ctx), ReleaseTime)
		defer cancel()
		_ = h.Unlock(confirmed) // fn has returned, so the error does not matter
	}()
	for {
		held := h.Context(ctx)
		over = context.Cause(held)
		if over == nil { // otherwise the hold is already lost
			err = fn(held, h)
			if over = context.Cause(held); over == nil {
				over = h.Err() // if the machine was suspended, the context may end late
			}
		}
		if !errors.Is(over, mortise.ErrInJeopardy) {
			return over, err
		}
		if why := h.Regain(ctx); why != nil {
			if ctx.Err() == nil {
				over = why
			}
			return over, err
		}
	}
}

// unlocks ends a context as Unlock does.
func unlocks(end context.CancelCauseFunc) { end(mortise.ErrUnlocked) }

func passing(err error) bool {
	return errors.Is(err, mortise.ErrOverloaded) || errors.Is(err, mortise.ErrQueueFull) ||
		errors.Is(err, mortise.ErrNotReady) || errors.Is(err, mortise.ErrNoRoom) || errors.Is(err, mortise.ErrLost)
}

func causeText(over, err error) error {
	if err == nil || err == context.Canceled || errors.Is(err, over) {
		return over
	}
	return fmt.Errorf("%w: %w", over, err)
}
