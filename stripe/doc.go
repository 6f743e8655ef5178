// Package stripe divides one name into n locks, its stripes, so that callers seldom wait for each
// other. A stock of 8,000 seats in eight stripes of 1,000 is sold to eight buyers at a time.
//
//	seats, err := stripe.New(node, "sale/42/seats", 8)
//	...
//	i, lock, err := seats.Any(ctx) // some stripe that is free
//	if err != nil { return err }
//	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
//	sell(lock.Context(ctx), i, lock.Token())
//
// [Set.Lock] locks the stripe of an item, [Set.Any] a free stripe, [Set.At] the stripe with a given
// number, and [Set.All] all stripes. Stripe i of the name "sale/42/seats" is the key
// "sale/42/seats/i", where i is decimal and begins at 0. Do not use these keys for anything else.
//
// # Guarantees
//
//   - The stripe of an item depends only on the item and n, in every version of this package.
//   - A call of All excludes every other All, Lock, Any and At of the same set. It locks the
//     stripes in ascending order, so two calls of All cannot deadlock.
//   - Waiters of one stripe are served in order. Waiters of different stripes have no common
//     order. If Any finds no free stripe, it waits for one stripe, and a later caller may get
//     another stripe sooner.
//   - Tokens increase per stripe: a resource must remember the highest token of each stripe.
//
// All instances must use the same n for a name, or they lock different stripes for the same item.
// To change n, either stop all users of the name first, or choose a new name and divide the
// protected resource into new stripes.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Only [Locks.Context] starts goroutines.
//
// # Failure
//
// A call that returns an error holds no lock. One of the locks of All can be lost while the others
// are held: [Locks.Err] reports that, and the context of [Locks.Context] ends with the first loss.
// A caller that holds a stripe and calls All or locks another stripe may deadlock, with itself or
// with other callers, until its context ends.
//
// # Limits
//
// A set has 1 to 4,096 stripes. A call of All sends one request per stripe, one after the other.
// A call of Any sends up to one request for each stripe that it finds locked.
//
// # Refused alternative
//
// A call of Any could wait for all stripes concurrently. But every waiter would then be in n
// queues, and most grants would be released unused.
package stripe
