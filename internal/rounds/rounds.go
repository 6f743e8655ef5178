// Package rounds repeats work under a hold: it acquires the hold, runs a function until the hold
// ends or the function returns, releases the hold, and begins again. Packages election and keep use
// it.
//
// Guarantees: one Loop runs one function at a time, and releases only after the function has
// returned, even if it panics. Concurrency: Run and all functions run on the goroutine that calls
// Run, and a Loop is not changed by it. Failure: Run ends with the errors that a repetition cannot
// cure, and reports all others. Limits: a function that ignores the end of its context may work
// beside the next holder, and only the token protects against that. Refused alternatives: a
// callback for the beginning and one for the end of a hold, because the second may be called while
// the work still runs.
package rounds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
)

// Hold is what a Loop acquires. *mortise.Lock is one.
type Hold interface {
	Token() mortise.Token
	Err() error
	Context(parent context.Context) context.Context
}

// Loop describes the work. All fields are required.
type Loop[H Hold] struct {
	Acquire func(ctx context.Context) (H, error)
	Use     func(ctx context.Context, h H) error
	Release func(ctx context.Context, h H) error
	Pauses  Pauses
	// Report is called after the release, with each error that does not end Run. token is 0 if the
	// hold was not acquired.
	Report func(token mortise.Token, err error)
}

// ReleaseTime limits how long Run waits for the confirmation of its release. Without the wait, a
// process that exits directly after Run could end before the release is sent.
const ReleaseTime = 5 * time.Second

// Run repeats the work until Use returns nil while its context has not ended, ctx ends, or a
// repetition cannot help. It returns nil in the first case, and the cause of ctx in the second.
func (l Loop[H]) Run(ctx context.Context) error {
	row := l.Pauses
	for {
		r := l.round(ctx)
		if r.end {
			return r.err
		}
		l.Report(r.token, r.err)
		if r.failed {
			sleep(ctx, row.next(r.lasted))
		}
	}
}

type round struct {
	token  mortise.Token // 0 if the hold was not acquired
	lasted time.Duration // time from the grant to the release
	err    error
	end    bool // Run returns err
	failed bool // Run pauses before the next round
}

func (l Loop[H]) round(ctx context.Context) round {
	h, err := l.Acquire(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return round{end: true, err: context.Cause(ctx)}
	case err != nil:
		return round{end: !passing(err), failed: true, err: err}
	}
	began := time.Now()
	over, err := l.use(ctx, h)
	r := round{token: h.Token(), lasted: time.Since(began)}
	switch {
	case over == nil:
		r.end, r.failed, r.err = err == nil, true, err
	case ctx.Err() != nil:
		r.end, r.err = true, causeText(context.Cause(ctx), err)
	default:
		r.err = causeText(over, err)
	}
	return r
}

// use runs the function and releases the hold, even if the function panics. It returns the error of
// the function. over is the reason why the hold or its context ended before the function returned,
// or nil.
func (l Loop[H]) use(ctx context.Context, h H) (over, err error) {
	defer func() {
		confirmed, cancel := context.WithTimeout(context.WithoutCancel(ctx), ReleaseTime)
		defer cancel()
		_ = l.Release(confirmed, h) // the function has returned, so the error does not matter
	}()
	held := h.Context(ctx)
	if held.Err() != nil { // the hold is already lost
		return context.Cause(held), nil
	}
	err = l.Use(held, h)
	if over = context.Cause(held); over == nil {
		over = h.Err() // if the machine was suspended, the context may end late
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

// Pauses are the pauses after failures. The first is First, and each following one is twice as
// long, up to Most. After a hold of at least Most, they begin again.
type Pauses struct {
	First, Most time.Duration
	last        time.Duration // 0 before the first failure
}

// NewPauses returns the pauses with the defaults of one second and one minute for values that are
// not positive. Most is at least First.
func NewPauses(first, most time.Duration) Pauses {
	if first <= 0 {
		first = time.Second
	}
	if most <= 0 {
		most = time.Minute
	}
	return Pauses{First: first, Most: max(first, most)}
}

// next returns the pause after a failure. lasted is the duration of the previous hold.
func (p *Pauses) next(lasted time.Duration) time.Duration {
	if lasted >= p.Most {
		p.last = 0
	}
	p.last = min(max(p.First, 2*p.last), p.Most)
	return p.last
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
