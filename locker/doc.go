// Package locker lets a service choose its lock implementation, and what the service does when
// that implementation fails.
//
// [Locker] has one method, Do, which *mortise.Node implements. A service that uses a Locker can
// also use these types without a change of its code:
//
//	Local      locks within this process: for tests, programs with one instance, and fallbacks
//	Requests   a Request of its own for each call: shared, permits, try, several keys, sticky
//	Func       a function as a Locker: an adapter of another lock service, or a fake
//	Retry      retries with pauses, until the work has begun
//	Patience   a wait limit that follows the duration of recent holds
//	Breaker    stops calling a failing locker; with a Fallback, machines do not exclude each other
//	Both       locks with two lockers, for the move from one lock service to another
//	Router     a locker per prefix of keys, with limits, so that no tenant starves the others
//
// Package lockertest checks any Locker, including your own.
//
// # Guarantees
//
//   - Every wrapper runs fn at most once per call, and only under the lock that its configuration
//     selects.
//   - A call that did not run fn returns an error and holds nothing.
//   - Given the context of fn, [mortise.TokenFrom] returns the token that was passed to fn.
//   - Only two options give up a guarantee: [BreakerConfig].Fallback and [BothConfig].Observe. In
//     fn, [Via] reports whether one of them has taken effect.
//
// # Concurrency
//
// Everything is safe for concurrent use. A call of Do starts no goroutine. Hooks are called on the
// goroutine of the call that they report, with no mutex held. fn also runs there if the innermost
// Locker is a Local or a Node.
//
// # Failure
//
// A panic in fn unlocks and continues to the caller of Do. A wrapper that was not made by its
// constructor returns an error from every call.
//
// # Limits
//
// Pauses and wait limits become longer if the machine sleeps; no guarantee depends on them. When
// a wait limit passes, a wrapper returns only after the Locker under it has returned. The limits
// of a Router and the state of a Breaker apply to one instance only.
//
// # Refused alternative
//
// In an interface whose Lock returns a handle, every fake and every wrapper would need a second
// type, and a handle can be leaked or released twice.
package locker
