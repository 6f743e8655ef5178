// Package mortisepair makes one Locker of two. Both holds the locks of both, for the move from one
// lock service to another. Breaker uses the second one while the first fails. It depends only on
// the interface, module locker, so it also pairs lock services of which none is mortise.
//
// # Guarantees
//
//   - fn runs at most once per call, and only under the lock that the configuration selects.
//   - A call that did not run fn returns an error and holds nothing.
//   - Given the context of fn, [locker.TokenFrom] returns the token that was passed to fn.
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
// A panic in fn unlocks and continues to the caller of Do. A Both or a Breaker that was not made by
// its constructor returns an error from every call.
//
// # Limits
//
// Pauses and wait limits become longer if the machine sleeps; no guarantee depends on them. When
// a wait limit passes, the call returns only after the Locker under it has returned. The state of a
// Breaker applies to one instance only.
//
// # Refused alternative
//
// Retries, limits for tenants and wait limits that follow recent holds are not here: a request
// waits in the queue of its key, mortise.Config.MaxWaiting limits that queue by prefix, nested
// requests with permits limit a tenant, and the context limits a wait.
package mortisepair
