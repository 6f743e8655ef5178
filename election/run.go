package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
)

// resignTime bounds how long Run waits for the confirmation of its resignation. Without a majority
// it would wait forever, and the release is on its way. Run waits because a process that exits
// right after Run would lose the release.
const resignTime = 5 * time.Second

// Run takes part in the election: it campaigns with value, runs fn while it leads, and repeats. It
// returns
//
//   - nil, if fn returned nil and its context had not ended: the work is done here, and other
//     instances take the lead;
//   - the cause of ctx's end, wrapped together with fn's own error if it had one, after Run has
//     resigned;
//   - mortise.ErrLeaving or ErrClosed if the node leaves or is closed, and other errors of Campaign
//     that waiting does not cure, such as mortise.ErrBadKey.
//
// The context of fn ends with its leadership, with ctx, or when the node leaves. Then fn must end
// what it has started and return. If only the leadership was lost, Run campaigns again. An error of
// fn whose context has not ended does not end Run: it resigns, calls [Options.Report], and
// campaigns again after a pause, which ends early only with ctx.
//
// To step down and stay a candidate, fn ends its work, calls [Leadership.Resign] and returns. If fn
// panics or calls runtime.Goexit, Run resigns first. Run waits for the confirmation of any
// resignation for at most 5 s.
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

type turn struct {
	token  mortise.Token // 0 if it did not lead
	lasted time.Duration // from the grant to the resignation
	err    error
	end    bool // Run returns err
	failed bool // Run pauses first
}

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
		t.end, t.err = true, causeText(context.Cause(ctx), err)
	default:
		t.err = causeText(over, err)
	}
	return t
}

// lead runs fn under a leadership and resigns, even if fn panics. It returns the error of fn. over
// is why the leadership, or its context, had ended by then, or nil.
func lead(ctx context.Context, l *Leadership, fn func(context.Context, *Leadership) error) (over, err error) {
	defer func() {
		confirmed, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignTime)
		defer cancel()
		_ = l.Resign(confirmed) // fn has returned, so the result does not matter
	}()
	held := l.Context(ctx)
	if held.Err() != nil { // already lost
		return context.Cause(held), nil
	}
	err = fn(held, l)
	if over = context.Cause(held); over == nil {
		over = l.Err() // the machine slept, and the context has not ended yet
	}
	return over, err
}

// passing reports whether a later retry can cure an error of Campaign.
func passing(err error) bool {
	return errors.Is(err, mortise.ErrOverloaded) || errors.Is(err, mortise.ErrQueueFull) ||
		errors.Is(err, mortise.ErrNotReady) || errors.Is(err, mortise.ErrNoRoom) || errors.Is(err, mortise.ErrLost)
}

// causeText joins the reason for which a context ended and the error of fn, unless that repeats the
// reason.
func causeText(over, err error) error {
	if err == nil || err == context.Canceled || errors.Is(err, over) {
		return over
	}
	return fmt.Errorf("%w: %w", over, err)
}

// backoff computes the pauses of a row of failures.
type backoff struct {
	first, most time.Duration
	last        time.Duration // 0 before the first failure
}

// next returns the pause after a failed leadership of duration lasted.
func (b *backoff) next(lasted time.Duration) time.Duration {
	if lasted >= b.most {
		b.last = 0 // a long leadership: not the same failure as before
	}
	b.last = min(max(b.first, 2*b.last), b.most)
	return b.last
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
