// Package stripe spreads one name over n locks, its stripes, so that callers who need not exclude
// each other seldom do: a stock of 8,000 seats in eight stripes of 1,000 is sold by eight buyers at
// a time.
//
//	seats, err := stripe.New(node, "sale/42/seats", 8)
//	...
//	i, lock, err := seats.Any(ctx) // some stripe that is free
//	if err != nil { return err }
//	defer lock.Unlock(ctx)
//	sell(lock.Context(ctx), i, lock.Token())
//
// [Set.Lock] picks the stripe of a thing, always the same one; [Set.Any] picks one that is free;
// [Set.At] takes the one that the caller names; [Set.All] takes all of them, for the rare operation
// on the whole. Stripe i of the name "sale/42/seats" is the key "sale/42/seats/i", in decimal and
// from 0: no other use may be made of these keys.
//
// # Guarantees
//
//   - The stripe of a thing depends on the thing and on n only. It is the same on every machine and
//     in every version of this package.
//   - Two calls of All exclude each other and each Lock, Any and At of the same set, and cannot
//     wait for each other in a circle: all take the stripes in ascending order.
//   - Within one stripe waiters are served in their order, as for any lock. Over the whole set they
//     are not: Any waits for one stripe when it has found none free, and a later caller may get
//     another stripe before it. It waits no longer than its place in that one queue.
//   - Tokens rise per stripe. A resource that is fenced remembers one token for each stripe.
//
// All instances must use the same n for a name. Instances with different n lock different stripes
// for the same thing, and do not exclude each other: to change n, change the name with it and move
// what is guarded, or stop all users first.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. There is no goroutine here.
//
// # Failure
//
// A call that returns an error holds nothing. Of the locks that All gave one can be lost while the
// others are held: [Locks.Err] says so, and the context of [Locks.Context] ends with the first that
// is lost. Whoever calls All or another stripe while it holds a stripe may wait for itself, or for
// others in a circle, until its context ends: only All orders what it takes.
//
// # Limits
//
// 1 to 4,096 stripes. All costs a request for each of them, one after the other; Any up to one
// request for each stripe that it finds taken. While All waits for a stripe it holds all lower
// ones.
//
// # Refused alternatives
//
// FNV instead of SHA-256: its lowest bit is only the parity of its input, so two stripes would
// split badly, and the time is nothing beside a lock's. Waiting for all stripes at once in Any,
// which would be fair over the set: every waiter would stand in n queues, and most grants would be
// given back. Consistent hashing, so that n can change: while it changes two instances would still
// not exclude each other for some things, and seldom enough to be found by nobody.
package stripe
