package fence

import (
	"context"

	"github.com/mortise-lock/mortise"
)

type carriedKey struct{}

// carried is a token that NewContext adds to a context. If the context already carried the token
// of a lock of this process, outer is that token.
type carried struct {
	token mortise.Token
	outer mortise.Token // zero means none
}

// NewContext returns a child of ctx that carries token, for example the token of a request to a
// server.
func NewContext(ctx context.Context, token mortise.Token) context.Context {
	outer, _ := mortise.TokenFrom(ctx)
	return context.WithValue(ctx, carriedKey{}, carried{token: token, outer: outer})
}

// FromContext returns the token that ctx carries: the token of a lock of this process
// ([mortise.TokenFrom]) or a token that NewContext has added, whichever was added last. It reports
// false if ctx carries no token.
func FromContext(ctx context.Context) (mortise.Token, bool) {
	local, locked := mortise.TokenFrom(ctx)
	came, ok := ctx.Value(carriedKey{}).(carried)
	if ok && came.outer == local { // the lock is the same as in NewContext; 0 means none
		return came.token, true
	}
	return local, locked
}

// Run passes token to store and, if store admits the token, runs fn with a context that carries it.
// It returns the error of fn, or the reason why fn did not run. Use Run for protocols for which
// this package has no middleware.
//
// If store is a [Section], fn runs under [Section.Do], so no fn of a lower token still runs.
// Otherwise a holder of a higher token can write while fn runs, so fn must fence its own write with
// the token from [FromContext].
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
