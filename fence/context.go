package fence

import (
	"context"

	"github.com/mortise-lock/mortise"
)

type carriedKey struct{}

// carried is a token that came from elsewhere, with the token of this process's lock under which
// the context stood then.
type carried struct {
	token mortise.Token
	outer mortise.Token // zero means none
}

// NewContext returns a child of ctx that carries token. The middlewares call it with the token of
// the request; the consumer of a queue calls it with the token of the message.
func NewContext(ctx context.Context, token mortise.Token) context.Context {
	outer, _ := mortise.TokenFrom(ctx)
	return context.WithValue(ctx, carriedKey{}, carried{token: token, outer: outer})
}

// FromContext returns the token under which ctx stands: that of a lock of this process
// ([mortise.TokenFrom]), or one that a request carried (NewContext); the inner one if there are
// both. It reports false if there is neither. So code need not know whether the lock is held here
// or by the caller of a service.
func FromContext(ctx context.Context) (mortise.Token, bool) {
	local, locked := mortise.TokenFrom(ctx)
	came, ok := ctx.Value(carriedKey{}).(carried)
	if ok && came.outer == local { // no lock was taken inside; without any lock local is 0
		return came.token, true
	}
	return local, locked
}

// Run asks store whether token is admitted and, if so, runs fn with a context that carries it. If
// the store is a [Section], fn runs in it, so that no fn of a lower token is still writing.
// Otherwise fn can be overtaken while it runs, and must fence its own write with the token from
// [FromContext]. Use Run for protocols that have no middleware here. It returns the error of fn, or
// the reason why fn did not run.
func Run(ctx context.Context, store Store, resource string, token mortise.Token, fn func(context.Context) error) error {
	work := func(ctx context.Context) error { return fn(NewContext(ctx, token)) }
	if section, ok := store.(Section); ok {
		return section.Do(ctx, resource, token, work)
	}
	if err := store.Advance(ctx, resource, token); err != nil {
		return err
	}
	return work(ctx)
}
