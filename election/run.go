package election

import (
	"context"

	"github.com/mortise-lock/mortise/internal/hold"
)

// resignTime limits how long Run waits for the confirmation of its resignation.
const resignTime = hold.ReleaseTime

// Run campaigns with value, runs fn while it leads, and repeats this. Each leadership begins with
// value, whatever an earlier one has proclaimed. Run returns
//
//   - nil, if fn returned nil and the context of fn had not ended: the work is done on this
//     instance, and other instances lead;
//   - the cause of ctx if ctx has ended, wrapped together with the error of fn, if any; Run has
//     then resigned;
//   - mortise.ErrLeaving or ErrClosed if the node leaves or is closed, and other permanent errors
//     of Campaign, such as mortise.ErrBadKey.
//
// The context of fn ends with its leadership, with ctx, or when the node leaves. fn must then end
// what it has started and return. If only the leadership was lost, Run campaigns again. With
// [Options.JeopardyGrace] it first waits until the doubt ends. If fn returns an error before its
// context has ended, Run resigns, calls [Options.Report], and campaigns again after a pause, which
// ends early only with ctx.
//
// To step down and remain a candidate, fn ends its work, calls [Leadership.Resign] and returns. If
// fn panics or calls runtime.Goexit, Run resigns first. Run waits for the confirmation of a
// resignation for at most 5 s.
func (e *Election) Run(ctx context.Context, value string, fn func(ctx context.Context, l *Leadership) error) error {
	return hold.Run(ctx, e.options.run(),
		func(ctx context.Context) (led, error) {
			l, err := e.Campaign(ctx, value)
			return led{l}, err
		},
		func(ctx context.Context, l led) error { return fn(ctx, l.Leadership) })
}

// led is a Leadership as a hold.Hold.
type led struct{ *Leadership }

func (l led) Unlock(ctx context.Context) error { return l.Resign(ctx) }
