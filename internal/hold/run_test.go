package hold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
)

// fake is a hold whose end the test decides.
type fake struct {
	token    mortise.Token
	end      context.CancelCauseFunc // ends the context of the hold
	over     context.Context
	late     error // what Err returns while the context has not ended
	regain   error
	regained int
	unlocked []time.Duration // the time that each Unlock was given
}

func (f *fake) Token() mortise.Token { return f.token }

func (f *fake) Err() error {
	if err := context.Cause(f.over); err != nil {
		return err
	}
	return f.late
}

func (f *fake) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	over := f.over // Regain replaces it
	context.AfterFunc(over, func() { cancel(context.Cause(over)) })
	if err := context.Cause(over); err != nil {
		cancel(err)
	}
	return ctx
}

func (f *fake) Regain(ctx context.Context) error {
	f.regained++
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f.regain == nil {
		f.over, f.end = context.WithCancelCause(context.Background())
	}
	return f.regain
}

func (f *fake) Unlock(ctx context.Context) error {
	until, _ := ctx.Deadline()
	f.unlocked = append(f.unlocked, time.Until(until))
	return ctx.Err()
}

// TestEachEndOfATurn checks, for each way in which an acquisition or a function ends, whether Run
// ends, with which error, what it reports, how long it pauses, and that each hold is released once.
func TestEachEndOfATurn(t *testing.T) {
	failed := errors.New("failed")
	lost := fmt.Errorf("so: %w", mortise.ErrLost)
	stop := errors.New("stop")
	type call func(ctx context.Context, f *fake, cancel context.CancelCauseFunc) error
	waits := func(ctx context.Context) { <-ctx.Done() }
	for _, row := range []struct {
		name    string
		acquire error
		stops   bool  // the context of Run ends in acquire
		early   error // the hold has ended before the function is called
		late    error
		regain  error
		fn      call

		want    error // of Run; nil means that Run goes on, or that the function is done if over is set
		over    bool
		reports string // the token and the error
		pause   time.Duration
		calls   int // of the function
	}{
		{name: "overloaded", acquire: mortise.ErrOverloaded, pause: time.Second},
		{name: "queue full", acquire: mortise.ErrQueueFull, pause: time.Second},
		{name: "not ready", acquire: mortise.ErrNotReady, pause: time.Second},
		{name: "no room", acquire: mortise.ErrNoRoom, pause: time.Second},
		{name: "lost", acquire: lost, pause: time.Second},
		{name: "a bad key", acquire: mortise.ErrBadKey, want: mortise.ErrBadKey, over: true},
		{name: "closed", acquire: mortise.ErrClosed, want: mortise.ErrClosed, over: true},
		{name: "the end while it waits", acquire: mortise.ErrOverloaded, stops: true, want: stop, over: true},
		{name: "done", over: true, calls: 1,
			fn: func(context.Context, *fake, context.CancelCauseFunc) error { return nil }},
		{name: "failed", fn: func(context.Context, *fake, context.CancelCauseFunc) error { return failed },
			reports: "7 failed", pause: time.Second, calls: 1},
		{name: "lost under it", fn: func(ctx context.Context, f *fake, _ context.CancelCauseFunc) error {
			f.end(lost)
			waits(ctx)
			return context.Cause(ctx)
		}, reports: "7 " + lost.Error(), calls: 1},
		{name: "lost, and canceled by it", fn: func(ctx context.Context, f *fake, _ context.CancelCauseFunc) error {
			f.end(lost)
			waits(ctx)
			return ctx.Err()
		}, reports: "7 " + lost.Error(), calls: 1},
		{name: "lost, and an error of its own", fn: func(ctx context.Context, f *fake, _ context.CancelCauseFunc) error {
			f.end(lost)
			waits(ctx)
			return failed
		}, reports: "7 " + lost.Error() + ": failed", calls: 1},
		{name: "lost, and its context is late", late: lost,
			fn:      func(context.Context, *fake, context.CancelCauseFunc) error { return nil },
			reports: "7 " + lost.Error(), calls: 1},
		{name: "the end in the function", fn: func(ctx context.Context, _ *fake, cancel context.CancelCauseFunc) error {
			cancel(stop)
			waits(ctx)
			return nil
		}, want: stop, over: true, calls: 1},
		{name: "the end, and an error of its own",
			fn: func(ctx context.Context, _ *fake, cancel context.CancelCauseFunc) error {
				cancel(stop)
				waits(ctx)
				return failed
			}, want: failed, over: true, calls: 1},
		{name: "lost before it", early: lost, reports: "7 " + lost.Error()},
		{name: "in jeopardy before it, and regained", early: mortise.ErrInJeopardy, over: true, calls: 1,
			fn: func(context.Context, *fake, context.CancelCauseFunc) error { return nil }},
		{name: "in jeopardy, and the end", want: stop, over: true, calls: 1,
			fn: func(ctx context.Context, f *fake, cancel context.CancelCauseFunc) error {
				f.end(mortise.ErrInJeopardy)
				waits(ctx)
				cancel(stop)
				return nil
			}},
		{name: "in jeopardy and regained", fn: func(ctx context.Context, f *fake, _ context.CancelCauseFunc) error {
			if f.regained == 0 {
				f.end(mortise.ErrInJeopardy)
				waits(ctx)
			}
			return nil
		}, over: true, calls: 2},
		{name: "in jeopardy and lost", regain: lost,
			fn: func(ctx context.Context, f *fake, _ context.CancelCauseFunc) error {
				f.end(mortise.ErrInJeopardy)
				waits(ctx)
				return nil
			}, reports: "7 " + lost.Error(), calls: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				var holds []*fake
				var reports []string
				calls, tries := 0, 0
				begun := time.Now()
				var next time.Duration
				again := errors.New("again")
				o := Options{Report: func(token mortise.Token, err error) {
					reports = append(reports, fmt.Sprint(uint64(token), " ", err))
				}}
				err := Run(ctx, o.WithDefaults(), func(context.Context) (*fake, error) {
					if tries++; tries > 1 {
						next = time.Since(begun)
						return nil, again // no error that passes: Run ends
					}
					if row.stops {
						cancel(stop)
					}
					if row.acquire != nil {
						return nil, row.acquire
					}
					f := &fake{token: 7, late: row.late, regain: row.regain}
					f.over, f.end = context.WithCancelCause(context.Background())
					if row.early != nil {
						f.end(row.early)
					}
					holds = append(holds, f)
					return f, nil
				}, func(ctx context.Context, f *fake) error {
					calls++
					return row.fn(ctx, f, cancel)
				})
				if row.over && !errors.Is(err, row.want) || row.over && row.want == nil && err != nil {
					t.Errorf("ends with %v, want %v", err, row.want)
				}
				if !row.over && (err != again || next != row.pause) {
					t.Errorf("tries again after %v, and ends with %v; want %v", next, err, row.pause)
				}
				var want []string
				if row.acquire != nil && !row.over {
					want = []string{"0 " + row.acquire.Error()}
				}
				if row.reports != "" {
					want = []string{row.reports}
				}
				if !slices.Equal(reports, want) || calls != row.calls {
					t.Errorf("reports %q, want %q; the function was called %d times, want %d", reports, want, calls, row.calls)
				}
				for _, f := range holds {
					if !slices.Equal(f.unlocked, []time.Duration{ReleaseTime}) {
						t.Errorf("released with %v, want once with %v", f.unlocked, ReleaseTime)
					}
				}
			})
		})
	}
}

// TestPausesBeginAgain checks that a pause doubles up to the limit, and is the first one again
// after a hold that lasted as long as the limit.
func TestPausesBeginAgain(t *testing.T) {
	b := backoff{first: time.Second, most: 10 * time.Second}
	for i, row := range []struct{ lasted, want time.Duration }{
		{0, 1}, {0, 2}, {9 * time.Second, 4}, {0, 8}, {0, 10}, {0, 10}, {10 * time.Second, 1}, {0, 2}, {time.Hour, 1},
	} {
		if got := b.next(row.lasted); got != row.want*time.Second {
			t.Errorf("pause %d is %v, want %v", i, got, row.want*time.Second)
		}
	}
}

// TestDefaults checks each field of the options: what zero means, and that a value is kept.
func TestDefaults(t *testing.T) {
	for given, want := range map[[2]time.Duration][2]time.Duration{
		{0, 0}: {1, 60}, {-1, -1}: {1, 60}, {2, 3}: {2, 3}, {3, 2}: {3, 3}, {90, 0}: {90, 90}, {0, 5}: {1, 5},
	} {
		o := Options{Backoff: given[0] * time.Second, MaxBackoff: given[1] * time.Second}.WithDefaults()
		if o.Backoff != want[0]*time.Second || o.MaxBackoff != want[1]*time.Second {
			t.Errorf("%v becomes %v and %v", given, o.Backoff, o.MaxBackoff)
		}
		o.Report(0, nil)
	}
}
