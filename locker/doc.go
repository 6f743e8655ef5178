// Package locker is the interface of the locks of mortise: what a project needs to accept them, or
// any other locks, without depending on mortise. Its module requires no other module.
//
//	type Reports struct{ Locks locker.Locker } // in production a *mortise.Node
//
//	func (r *Reports) Write(ctx context.Context) error {
//		return r.Locks.Do(ctx, "reports/daily", func(ctx context.Context, token locker.Token) error {
//			return write(ctx, token) // ctx ends if the lock is lost; the token fences the resource
//		})
//	}
//
// The names:
//
//   - [Locker] runs work under a lock. *mortise.Node implements it.
//   - [Requests] makes a Locker of other kinds of locks, for example shared ones.
//   - [Func] makes a Locker of a function, for example of another lock service.
//   - [Local] is a Locker in memory, for tests and for programs with one instance.
//   - [Acquirer] and [Lock] are for code that cannot do its work in one function.
//   - [Token] and the errors are those of mortise: mortise.Token is an alias, and mortise.ErrLost
//     is the same value as ErrLost.
//
// Package lockertest checks any Locker. Module adapters/mortisepair makes one Locker of two.
//
// # Guarantees
//
// [Locker] has the contract, and [Local] and [Requests] keep it.
//
// # Concurrency
//
// Everything is safe for concurrent use. Nothing here starts a goroutine, and fn runs on that of
// the caller.
//
// # Failure
//
// A panic in fn unlocks and continues to the caller of Do.
//
// # Limits
//
// The interface has what all locks have. For leases, queues and holders use package mortise.
//
// # Refused alternative
//
// If a Locker returned a handle, every fake and every wrapper would need a second
// type, and a handle can be leaked or released twice.
package locker
