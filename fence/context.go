package fence

import (
	"context"

	"github.com/mortise-lock/mortise"
)

// carriedKey is the key under which a context carries a token that came from elsewhere.
type carriedKey struct{}

// carried is such a token, with the lock of this process under which the context stood at that
// moment.
type carried struct {
	token mortise.Token
	outer mortise.Token // 0: none
}

// NewContext returns a child of ctx that carries token. The middlewares call it with the token of
// the request; a consumer of a queue calls it with the token of the message.
func NewContext(ctx context.Context, token mortise.Token) context.Context {
	outer, _ := mortise.TokenFrom(ctx)
	return context.WithValue(ctx, carriedKey{}, carried{token: token, outer: outer})
}

// FromContext returns the token under which ctx stands: that of a lock of this process
// ([mortise.TokenFrom]), or one that a request brought with it (NewContext), of both the inner one.
// It reports false if there is neither. So whoever writes at the bottom of a call needs not know
// whether the lock is held here or by the caller of a service.
func FromContext(ctx context.Context) (mortise.Token, bool) {
	local, locked := mortise.TokenFrom(ctx)
	came, ok := ctx.Value(carriedKey{}).(carried)
	if ok && came.outer == local { // no lock was taken inside; local is 0 where there is none
		return came.token, true
	}
	return local, locked
}

// Run asks store whether token is admitted and, if so, runs fn with a context that carries it. If
// the store is a [Section], fn runs in it, so that no fn of a lower token is still writing. If it
// is not, fn can be overtaken while it runs, and has to fence its own write, with the token that
// [FromContext] gives it. The middlewares are made of Run; use it for what they do not cover. It
// returns the error of fn, or why fn did not run.
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
