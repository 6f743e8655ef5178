package mortisepair

import (
	"context"
	"slices"
)

// The elements of the results of Via.
const (
	Primary   = "primary"    // a Breaker's Locker holds the lock
	Fallback  = "fallback"   // a Breaker's Fallback holds the lock
	FirstOnly = "first only" // only the First of a Both with Observe holds the lock
)

type viaKey struct{}

// Via returns the path of a call through the Breakers and Boths of the Locker, the outermost
// first. ctx must be the context of fn. A Both that holds both locks has no element of its own.
// It adds the path of First and, without Observe, the path of Second. In nested calls, Via
// returns the path of the innermost call. The caller owns the slice.
//
//	if slices.Contains(locker.Via(ctx), locker.Fallback) { … }
func Via(ctx context.Context) []string {
	ways, _ := ctx.Value(viaKey{}).([]string)
	return slices.Clone(ways)
}

func via(ctx context.Context, ways ...string) context.Context {
	return context.WithValue(ctx, viaKey{}, slices.Concat(ways, Via(ctx)))
}

func noVia(ctx context.Context) context.Context {
	if ctx.Value(viaKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, viaKey{}, nil)
}
