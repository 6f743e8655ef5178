// Package flight computes a value only once when many callers in many processes want it at the same
// time. When an entry of a cache expires, one instance rebuilds it, and all others read the new
// entry from the cache.
//
//	pages := flight.New[Page](node)
//	defer pages.Close()
//	...
//	page, err := pages.Do(ctx, "page/start",
//		func(ctx context.Context) (Page, bool, error) { return cache.Get(ctx, "start") },
//		func(ctx context.Context, token mortise.Token) (Page, error) { return rebuild(ctx, token) })
//
// Within a process all callers of one key share one call. The call takes the lock of the key and
// runs the first function, which checks whether the value exists now. If the value does not exist,
// the call runs the second function, which computes the value. The second function must also store
// the value where the first function finds it.
//
// # Guarantees
//
//   - Within a Group at most one call of a key runs at a time. Across all instances, at most one
//     running call of a key still has its lock.
//   - A caller whose context ends does not end the call for the other callers. When no caller waits
//     any longer, the context of the call ends.
//   - The context of the call also ends when the lock is lost, the node leaves, or the Group is
//     closed. context.Cause returns the reason.
//   - Callers get the result as soon as it exists, before the lock is released.
//   - All callers of a call get its error. Errors are not cached: the next caller begins a new
//     call.
//   - A key without callers takes no memory.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Each call has one goroutine, on which its
// functions run. All callers get the same value: copy it before you change it. The call uses the
// functions of its first caller and the values of that caller's context. The functions must not
// call Close, or Do for their own key, because the call would wait for itself.
//
// # Cancellation
//
// When the context of a caller ends, Do returns immediately with the cause of that context. The
// call itself has no deadline: if the second function can hang, let it set a deadline.
//
// # Failure
//
// If the lock is lost, the context of the call ends, and the next instance computes the value. A
// process that is stopped cannot react to that, so two instances may compute at the same time, and
// the older one may write last. The token prevents such a write if the cache stores the highest
// token with the value and refuses lower tokens. If a computation succeeds although its lock was
// lost, Do returns its value without an error.
//
// If the first function fails, nothing is computed. To compute while the cache is down, let the
// first function return false and a nil error.
//
// If a function panics, every waiting caller panics with a *PanicError; if no caller waits, the
// panic is discarded. If a function calls runtime.Goexit, every caller gets an error.
//
// # Limits
//
// Keys are 1 to 512 bytes, as for locks. Waiting instances are granted the lock one after the
// other. Each holds it for the time of one cache read.
//
// # Refused alternatives
//
// Ending the call when its first caller's context ends: the other callers would get an error that
// does not concern them.
package flight
