// Package stripe spreads one name over n locks, its stripes, so that callers that need not exclude
// each other seldom do. A stock of 8,000 seats in eight stripes of 1,000 is sold to eight buyers at
// a time.
//
//	seats, err := stripe.New(node, "sale/42/seats", 8)
//	...
//	i, lock, err := seats.Any(ctx) // some stripe that is free
//	if err != nil { return err }
//	defer lock.Unlock(ctx)
//	sell(lock.Context(ctx), i, lock.Token())
//
// [Set.Lock] takes the stripe of an item; [Set.Any] one that is free; [Set.At] the one that the
// caller names; [Set.All] all of them. Stripe i of the name "sale/42/seats" is the key
// "sale/42/seats/i", in decimal and from 0. Do not use these keys for anything else.
//
// # Guarantees
//
//   - The stripe of an item depends only on the item and n, in every version of this package.
//   - Two calls of All exclude each other and every Lock, Any and At of the same set. All take the
//     stripes in ascending order, so they cannot wait for each other in a circle.
//   - Waiters of one stripe are served in order. Across the set they are not: Any waits for one
//     stripe if it finds none free, and a later caller may get another stripe before it.
//   - Tokens rise per stripe: a fenced resource remembers one for each.
//
// All instances must use the same n for a name, or they lock different stripes for the same item.
// To change n, change the name with it and move what it guards, or stop all users first.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. The package starts no goroutine.
//
// # Failure
//
// A call that returns an error holds nothing. One of the locks of All can be lost while the others
// are held: [Locks.Err] reports it, and the context of [Locks.Context] ends with the first loss. A
// caller that calls All, or takes another stripe, while it holds a stripe may wait for itself, or
// in a circle, until its context ends: only All orders what it takes.
//
// # Limits
//
// 1 to 4,096 stripes. All costs one request per stripe, one after the other. Any costs up to one
// request for each stripe that it finds taken.
//
// # Refused alternatives
//
// FNV instead of SHA-256: its lowest bit is only the parity of its input, so two stripes would
// split badly, and a lock takes much longer than either. Waiting for all stripes at once in Any,
// which would be fair across the set: every waiter would stand in n queues, and most grants would
// be given back. Consistent hashing, so that n can change: during the change two instances would
// still not exclude each other for some items, too rarely to be noticed.
package stripe
