package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
)

// resignTime bounds how long Run waits until its resignation is confirmed. Without a majority it
// would wait for ever, and the release is on its way. It waits at all since a process that exits
// right after Run would else take the release with it.
const resignTime = 5 * time.Second

// Run takes part in the election: it campaigns with value, runs fn while it leads, and so on, one
// after the other. It returns
//
//   - nil, when fn has returned nil and its context had not ended: the work is done here. Other
//     instances take the lead and run theirs;
//   - the cause of ctx's end, wrapped together with fn's own error if it had one. By then fn has
//     returned and Run has resigned;
//   - mortise.ErrLeaving or ErrClosed when the node leaves or is closed, and other errors of
//     Campaign that do not pass by waiting, such as mortise.ErrBadKey.
//
// The context of fn is that of its leadership, and ends with it, with ctx, or when the node leaves.
// Then fn ends what it has started and returns, with nil or any error. If only the leadership was
// lost, Run campaigns again as soon as fn has returned, and not before. An error of fn while its
// context has not ended does not end Run: it resigns, tells [Options.Report], and takes part again
// after a pause, which ends early only with ctx.
//
// To step down and stay a candidate, fn ends its work, calls [Leadership.Resign] and returns. If fn
// panics or ends its goroutine, Run resigns first, for at most 5 s. That is also the longest it
// waits for the confirmation of any resignation.
func (e *Election) Run(ctx context.Context, value string, fn func(ctx context.Context, l *Leadership) error) error {
	row := backoff{first: e.options.Backoff, most: e.options.MaxBackoff}
	for {
		t := e.turn(ctx, value, fn)
		if t.end {
			return t.err
		}
		e.options.Report(t.token, t.err)
		if t.failed {
			sleep(ctx, row.next(t.lasted))
		}
	}
}

// turn is what came of one campaign of Run.
type turn struct {
	token  mortise.Token // 0: it did not lead
	lasted time.Duration // from the grant to the resignation
	err    error
	end    bool // of Run, with err
	failed bool // so pause first
}

// turn campaigns once, and runs fn if it leads.
func (e *Election) turn(ctx context.Context, value string, fn func(context.Context, *Leadership) error) turn {
	l, err := e.Campaign(ctx, value)
	switch {
	case err != nil && ctx.Err() != nil:
		return turn{end: true, err: context.Cause(ctx)}
	case err != nil:
		return turn{end: !passing(err), failed: true, err: err}
	}
	began := time.Now()
	over, err := lead(ctx, l, fn)
	t := turn{token: l.Token(), lasted: time.Since(began)}
	switch {
	case over == nil:
		t.end, t.failed, t.err = err == nil, true, err
	case ctx.Err() != nil:
		t.end, t.err = true, because(context.Cause(ctx), err)
	default:
		t.err = because(over, err)
	}
	return t
}

// lead runs fn under a leadership and resigns, also if fn panics. It returns what fn returned, and
// why the leadership was over by then, or its context had ended; nil: it was not.
func lead(ctx context.Context, l *Leadership, fn func(context.Context, *Leadership) error) (over, err error) {
	defer func() {
		confirmed, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignTime)
		defer cancel()
		_ = l.Resign(confirmed) // what happens to it after fn has returned makes no difference to anybody here
	}()
	held := l.Context(ctx)
	if held.Err() != nil { // lost on the way here
		return context.Cause(held), nil
	}
	err = fn(held, l)
	if over = context.Cause(held); over == nil {
		over = l.Err() // the machine slept, and nobody has been told yet
	}
	return over, err
}

// passing reports whether an error of Campaign says to try again later.
func passing(err error) bool {
	return errors.Is(err, mortise.ErrOverloaded) || errors.Is(err, mortise.ErrQueueFull) ||
		errors.Is(err, mortise.ErrNotReady) || errors.Is(err, mortise.ErrNoRoom) || errors.Is(err, mortise.ErrLost)
}

// because joins the reason for which a context has ended and what fn said then, if that is more
// than that it has ended.
func because(over, err error) error {
	if err == nil || err == context.Canceled || errors.Is(err, over) {
		return over
	}
	return fmt.Errorf("%w: %w", over, err)
}

// backoff is the pauses of a row of failures.
type backoff struct {
	first, most time.Duration
	last        time.Duration // 0: the row has not begun
}

// next returns the pause after the failure of a leadership that lasted so long.
func (b *backoff) next(lasted time.Duration) time.Duration {
	if lasted >= b.most {
		b.last = 0 // whatever it is, it is not what failed before
	}
	b.last = min(max(b.first, 2*b.last), b.most)
	return b.last
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
