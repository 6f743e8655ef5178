package locker

import (
	"context"
	"slices"
)

// The results of Via, also for logs.
const (
	Primary   = "primary"    // a Breaker's Locker holds the lock
	Fallback  = "fallback"   // a Breaker's Fallback holds it: holders of the Locker are not excluded
	FirstOnly = "first only" // the First of a Both with Observe holds it, the Second does not
)

type viaKey struct{}

// Via returns, in fn, the path of its call through the Breakers and Boths of its Locker, outermost
// first. A Both that holds both locks adds only the path of First (and, without Observe, of
// Second). In nested calls the innermost call through this package counts. The caller owns the
// slice.
//
//	if slices.Contains(locker.Via(ctx), locker.Fallback) { … }
func Via(ctx context.Context) []string {
	ways, _ := ctx.Value(viaKey{}).([]string)
	return slices.Clone(ways)
}

// via returns a child of ctx with these path elements added in front. The innermost wrapper runs
// first.
func via(ctx context.Context, ways ...string) context.Context {
	return context.WithValue(ctx, viaKey{}, slices.Concat(ways, Via(ctx)))
}

func noVia(ctx context.Context) context.Context {
	if ctx.Value(viaKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, viaKey{}, nil)
}
