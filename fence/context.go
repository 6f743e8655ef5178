package fence

import (
	"context"

	"github.com/mortise-lock/mortise"
)

// Run passes token to store and, if store admits the token, runs fn with a context that carries it.
// It returns the error of fn, or the reason why fn did not run. Use Run for protocols for which
// this package has no middleware.
//
// If store is a [Section], fn runs under [Section.Do], so no fn of a lower token still runs.
// Otherwise a holder of a higher token can write while fn runs, so fn must fence its own write with
// the token from [mortise.TokenFrom].
func Run(ctx context.Context, store Store, resource string, token mortise.Token, fn func(context.Context) error) error {
	work := func(ctx context.Context) error { return fn(mortise.ContextWithToken(ctx, token)) }
	if section, ok := store.(Section); ok {
		return section.Do(ctx, resource, token, work)
	}
	if err := store.Advance(ctx, resource, token); err != nil {
		return err
	}
	return work(ctx)
}
