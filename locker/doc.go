// Package locker lets a service choose its lock implementation, and choose what happens when that
// implementation fails.
//
// [Locker] has one method, Do, which *mortise.Node implements. A service that uses a Locker can be
// tested with a [Local], run on a node, and use a wrapper, without a change of its code:
//
//	Local      locks within this process: for tests, programs with one instance, and fallbacks
//	Func       a function as a Locker: an adapter of another lock service, or a fake
//	Retry      retries with pauses, until the work has begun
//	Breaker    stops calling a failing locker; with a Fallback, machines do not exclude each other
//	Both       locks with two lockers, for the move from one lock service to another
//	Router     a locker per prefix of keys, with limits, so that no tenant starves the others
//
// Package lockertest checks any Locker, including your own.
//
// # Guarantees
//
//   - Every wrapper runs fn at most once per call, even if a locker under it breaks its contract.
//     fn runs under the lock that the configuration of the wrapper names.
//   - A call that did not run fn returns an error and holds no lock.
//   - The token passed to fn is the one that [mortise.TokenFrom] finds in its context.
//   - Only two options give up a guarantee: [BreakerConfig].Fallback and [BothConfig].Observe. In
//     fn, [Via] reports whether the guarantee was given up.
//
// # Concurrency
//
// Everything is safe for concurrent use. A call of Do starts no goroutine, but a wait limit uses a
// timer. Hooks are called on the goroutine of the call that they report, while no mutex of this
// package is held. fn runs on that goroutine if the innermost Locker runs fn on the goroutine that
// calls it, as Local and Node do.
//
// # Failure
//
// If fn panics, the lock is released and the panic reaches the caller. Constructors report all
// mistakes of a configuration, by field. A wrapper that was not made by its constructor returns an
// error from every call.
//
// # Limits
//
// Pauses and wait limits use package time, so the suspension of a machine lengthens them. They
// protect no data. When a wait limit passes, a wrapper cancels the context of the Locker under it,
// and returns only after that Locker has returned. The limits of a Router and the state of a
// Breaker are not shared with other instances.
//
// # Refused alternative
//
// An interface with handles, where Lock returns a value with the methods Unlock, Token, Err, Done
// and Context. Every fake and every wrapper would need a second type with five methods. A handle
// can be leaked, kept after a fallback has ended, or released twice. With Do a wrapper knows
// whether the work has begun and whether it has ended.
package locker
