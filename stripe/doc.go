// Package stripe divides one name into n locks, its stripes, so that callers that need not exclude
// each other seldom wait for each other. For example, 8,000 seats in eight stripes of 1,000 can be
// sold to eight buyers at a time.
//
//	seats, err := stripe.New(node, "sale/42/seats", 8)
//	...
//	i, lock, err := seats.Any(ctx) // some stripe that is free
//	if err != nil { return err }
//	defer lock.Unlock(ctx)
//	sell(lock.Context(ctx), i, lock.Token())
//
// [Set.Lock] locks the stripe of an item, [Set.Any] a stripe that is free, [Set.At] the stripe with
// a given number, and [Set.All] all stripes. Stripe i of the name "sale/42/seats" is the key
// "sale/42/seats/i", in decimal and from 0. Do not use these keys for anything else.
//
// # Guarantees
//
//   - The stripe of an item depends only on the item and n, in every version of this package.
//   - Two calls of All exclude each other and every Lock, Any and At of the same set. Every call of
//     All locks the stripes in ascending order, so calls of All cannot wait for each other in a
//     circle.
//   - Waiters of one stripe are served in order. There is no order across the set: Any waits for
//     one stripe if it finds none free, and a later caller may get another stripe earlier.
//   - Tokens rise per stripe, so a fenced resource remembers one token for each stripe.
//
// All instances must use the same n for a name, or they lock different stripes for the same item.
// To change n, either use a new name and move the items to it, or stop all users first.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. The package starts no goroutine.
//
// # Failure
//
// A call that returns an error holds nothing. One of the locks of All can be lost while the others
// are held: [Locks.Err] reports it, and the context of [Locks.Context] ends with the first loss. A
// caller that holds a stripe and calls All, or locks another stripe, may wait for itself, or in a
// circle with other callers, until its context ends. Only the locks within one call of All are
// ordered.
//
// # Limits
//
// A set has 1 to 4,096 stripes. All sends one request per stripe, one after the other. Any sends at
// most one request per stripe until it finds a free one, and one more if all are taken.
package stripe
