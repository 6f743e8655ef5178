// Package locker lets a service choose what stands behind its locks, and degrade with open eyes:
// one small interface, a locker inside the process, and wrappers that try again, break the circuit,
// hold two locks at once, or keep tenants apart.
//
// [Locker] has one method, Do, which *mortise.Node has as it is. A service that takes a Locker is
// tested with a [Local], runs on a node, and can be put behind a wrapper without changing:
//
//	Local      locks within this process: tests, programs with one instance, and fallbacks
//	Func       a function as a Locker: to adapt another lock service, or to write a fake
//	Retry      tries again, with pauses, while the work has not begun
//	Breaker    stops asking a locker that fails, and may go to a Fallback, which gives up exclusion between machines
//	Both       two locks at once, to move from one lock service to another
//	Router     a locker for each prefix of keys, with limits, so that no tenant starves the others
//
// The package lockertest checks what any Locker must do, users' own included.
//
// # Guarantees
//
//   - Every wrapper runs fn at most once in a call, whatever the lockers under it do, and runs it
//     under the lock that its configuration names.
//   - A call that did not run fn returns an error and holds nothing.
//   - The token given to fn, and the one that [mortise.TokenFrom] finds in its context, are the
//     same.
//   - What gives a guarantee up has a name for it: [BreakerConfig].Fallback, [BothConfig].Observe.
//     [Via] says in fn whether that happened.
//
// # Concurrency
//
// Everything is safe for concurrent use. No goroutine outlives a call of Do, and none is started
// for it, except that a wait limit has a timer. Hooks are called on the goroutine of the call that
// they report, with no mutex of this package held; fn runs there if the Locker at the bottom runs
// it there, as Local and Node do.
//
// # Failure
//
// A panic in fn passes through and unlocks. Configurations are checked when a wrapper is made, and
// all mistakes are told at once, by the name of the field. A wrapper that was not made by its
// function answers every call with an error that says so.
//
// # Limits
//
// Time is package time: a machine that sleeps stretches pauses and wait limits, which protect
// nothing. A wrapper can only be as quick to give up as the Locker under it returns when its
// context ends. Nothing here is shared between processes: the limits of a Router, and the state of
// a Breaker, are those of this instance.
//
// # Refused alternative
//
// An interface with handles: Lock returns a lock, which has Unlock, Token, Err, Done and Context. A
// fake would need a second type with five methods that are hard to get right; every wrapper would
// have to wrap the handle too; a handle can be leaked, kept after a fallback has ended, or released
// twice. With Do, the work is inside the call, so a wrapper knows whether it has begun, and when it
// is over.
package locker
