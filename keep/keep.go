package keep

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/rounds"
)

// Node is the part of *mortise.Node that Run uses. It must be safe for concurrent use.
type Node interface {
	Acquire(ctx context.Context, r mortise.Request) (*mortise.Lock, error)
}

// Options configure Run.
type Options struct {
	// Backoff is the pause after the function failed or the node was overloaded. The pause doubles
	// with every consecutive failure, up to MaxBackoff. After a hold of MaxBackoff or longer, the next
	// pause is Backoff. Zero or less means one second.
	Backoff time.Duration

	// MaxBackoff limits the pause. Zero or less means 1 min, or Backoff if that is longer.
	MaxBackoff time.Duration

	// Report is called on the goroutine of Run, after the release, with each error that does not end
	// Run: the error of the function, the reason why the lock has ended before the function returned,
	// wrapped together with the function's own error, or the reason why the lock was not acquired, in
	// which case token is 0. If Report is nil, these errors are dropped.
	Report func(token mortise.Token, err error)
}

// Run acquires the lock, runs fn while it is held, releases it, and repeats this. It returns
//
//   - nil, if fn returned nil and the context of fn had not ended: the work is done;
//   - the cause of ctx if ctx has ended, wrapped together with the error of fn, if any; the lock
//     has then been released;
//   - mortise.ErrLeaving or ErrClosed if the node leaves or is closed, and other errors of
//     mortise.Node.Acquire that a repetition cannot cure, such as mortise.ErrBadRequest.
//
// The context of fn ends with the lock, with ctx, or when the node leaves. fn must then end what it
// has started and return. If only the lock was lost, Run acquires it again. If fn returns an error
// before its context has ended, Run releases the lock, calls [Options].Report, and acquires the
// lock again after a pause, which ends early only with ctx. Run waits for the confirmation of a
// release for at most 5 s.
func Run(ctx context.Context, node Node, r mortise.Request, o Options,
	fn func(ctx context.Context, lock *mortise.Lock) error) error {
	if r.Try || r.Resume != 0 {
		return fmt.Errorf("%w: Request.Try or Resume in keep.Run, which repeats its request", mortise.ErrBadRequest)
	}
	if o.Report == nil {
		o.Report = func(mortise.Token, error) {}
	}
	return rounds.Loop[*mortise.Lock]{
		Acquire: func(ctx context.Context) (*mortise.Lock, error) { return node.Acquire(ctx, r) },
		Use:     fn,
		Release: func(ctx context.Context, lock *mortise.Lock) error { return lock.Unlock(ctx) },
		Pauses:  rounds.NewPauses(o.Backoff, o.MaxBackoff),
		Report:  o.Report,
	}.Run(ctx)
}
