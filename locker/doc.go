// Package locker lets a service choose its lock implementation and degrade deliberately.
//
// [Locker] has one method, Do, which *mortise.Node implements. A service that takes a Locker is
// tested with a [Local], runs on a node, and can use a wrapper without a change:
//
//	Local      locks within this process: for tests, programs with one instance, and fallbacks
//	Func       a function as a Locker: an adapter of another lock service, or a fake
//	Retry      retries with pauses, as long as the work has not begun
//	Breaker    stops calling a locker that fails; a Fallback gives up exclusion between machines
//	Both       two locks at once, for the move from one lock service to another
//	Router     a locker per prefix of keys, with limits, so that no tenant starves the others
//
// Package lockertest checks any Locker, including your own.
//
// # Guarantees
//
//   - Every wrapper runs fn at most once per call, whatever the lockers under it do, under the lock
//     that its configuration names.
//   - A call that did not run fn returns an error and holds nothing.
//   - The token passed to fn is the one that [mortise.TokenFrom] finds in its context.
//   - An option that gives up a guarantee has a name: [BreakerConfig].Fallback,
//     [BothConfig].Observe. In fn, [Via] reports whether that happened.
//
// # Concurrency
//
// Everything is safe for concurrent use. A call of Do starts no goroutine, but a wait limit has a
// timer. Hooks are called on the goroutine of the call that they report, with no mutex of this
// package held. fn runs there too if the innermost Locker runs it there, as Local and Node do.
//
// # Failure
//
// A panic in fn passes through and unlocks. Constructors report all mistakes of a configuration, by
// field. A wrapper that its constructor did not make returns an error from every call.
//
// # Limits
//
// Pauses and wait limits use package time, so a machine that sleeps stretches them; they protect
// nothing. A wrapper gives up only when the Locker under it returns after its context has ended.
// The limits of a Router and the state of a Breaker belong to this instance.
//
// # Refused alternative
//
// An interface with handles: Lock returns a lock with Unlock, Token, Err, Done and Context. Every
// fake and every wrapper would need a second type with five methods that are hard to get right. A
// handle can be leaked, kept after a fallback has ended, or released twice. With Do a wrapper knows
// whether the work has begun and when it is over.
package locker
