package locker

import (
	"context"
	"slices"
)

// The strings that Via returns. They may also be logged.
const (
	Primary   = "primary"    // the Locker of a Breaker holds the lock
	Fallback  = "fallback"   // its Fallback holds it: holders of the Locker are not excluded
	FirstOnly = "first only" // the First of a Both with Observe holds it, the Second does not
)

type viaKey struct{}

// Via returns the path of a call through the Breakers and Boths of its Locker, the outermost first.
// ctx is the context of fn. A Both that holds both locks adds only the path of First and, without
// Observe, the path of Second. In nested calls, Via reports the innermost call through this
// package. The caller owns the slice.
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
