package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
)

// resignTime limits how long Run waits for the confirmation of its resignation. Without the wait, a
// process that exits directly after Run could end before the release is sent.
const resignTime = 5 * time.Second

// Run campaigns with value, runs fn while it leads, and repeats this. It returns
//
//   - nil, if fn returned nil and the context of fn had not ended: the work is done on this
//     instance, and other instances lead;
//   - the cause of ctx if ctx has ended, wrapped together with the error of fn, if any; Run has
//     then resigned;
//   - mortise.ErrLeaving or ErrClosed if the node leaves or is closed, and other permanent errors
//     of Campaign, such as mortise.ErrBadKey.
//
// The context of fn ends with its leadership, with ctx, or when the node leaves. fn must then end
// what it has started and return. If only the leadership was lost, Run campaigns again. If fn
// returns an error before its context has ended, Run resigns, calls [Options.Report], and campaigns
// again after a pause, which ends early only with ctx.
//
// To step down and remain a candidate, fn ends its work, calls [Leadership.Resign] and returns. If
// fn panics or calls runtime.Goexit, Run resigns first. Run waits for the confirmation of a
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
	token  mortise.Token // 0 if this instance did not lead
	lasted time.Duration // time from the grant to the resignation
	err    error
	end    bool // Run returns err
	failed bool // Run pauses before the next campaign
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
// is the reason why the leadership or its context ended before fn returned, or nil.
func lead(ctx context.Context, l *Leadership, fn func(context.Context, *Leadership) error) (over, err error) {
	defer func() {
		confirmed, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignTime)
		defer cancel()
		_ = l.Resign(confirmed) // fn has returned, so the error does not matter
	}()
	held := l.Context(ctx)
	if held.Err() != nil { // the leadership is already lost
		return context.Cause(held), nil
	}
	err = fn(held, l)
	if over = context.Cause(held); over == nil {
		over = l.Err() // if the machine was suspended, the context may end late
	}
	return over, err
}

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

type backoff struct {
	first, most time.Duration
	last        time.Duration // 0 before the first failure
}

// next returns the pause after a failure. lasted is the duration of the previous leadership.
func (b *backoff) next(lasted time.Duration) time.Duration {
	if lasted >= b.most {
		b.last = 0 // after a long leadership, the pauses begin again with the first
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
