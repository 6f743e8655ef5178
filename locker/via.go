package locker

import (
	"context"
	"slices"
)

// What Via says of a call. They are words for logs, too.
const (
	Primary   = "primary"    // a Breaker's Locker holds the lock
	Fallback  = "fallback"   // a Breaker's Fallback holds it: who holds it of the Locker is not excluded
	FirstOnly = "first only" // the First of a Both with Observe holds it, the Second does not
)

// viaKey is the key under which a context carries what Via returns.
type viaKey struct{}

// Via returns, to fn, which way its call took through the Breakers and Boths of its Locker,
// outermost first: nothing for a Both that holds both locks, but then what there is to say of First
// (and, without Observe, of Second). Of several calls within each other it speaks of the innermost
// that went through this package. The slice is the caller's.
//
//	if slices.Contains(locker.Via(ctx), locker.Fallback) { … }
func Via(ctx context.Context) []string {
	ways, _ := ctx.Value(viaKey{}).([]string)
	return slices.Clone(ways)
}

// via returns a child of ctx that has come these ways too. Contexts come up from the lock to fn, so
// the outermost wrapper is the last to ask.
func via(ctx context.Context, ways ...string) context.Context {
	return context.WithValue(ctx, viaKey{}, slices.Concat(ways, Via(ctx)))
}

// noVia returns ctx for a call that has not gone any way yet, although the call around it may have.
func noVia(ctx context.Context) context.Context {
	if ctx.Value(viaKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, viaKey{}, nil)
}
