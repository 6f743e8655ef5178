// Package flight lets one caller of a whole fleet compute a value that many want at the same time.
// When an entry of a cache expires, one instance rebuilds it, and all others read what it wrote.
//
//	pages := flight.New[Page](node)
//	defer pages.Close()
//	...
//	page, err := pages.Do(ctx, "page/start",
//		func(ctx context.Context) (Page, bool, error) { return cache.Get(ctx, "start") },
//		func(ctx context.Context, token mortise.Token) (Page, error) { return rebuild(ctx, token) })
//
// Here rebuild also writes the page to the cache. Within a process all callers of one key share one
// call. The call waits for the lock of the key, and checks whether the value exists by now (the
// first function). Only if not, it computes the value (the second function), and must leave the
// result where the first function finds it.
//
// # Guarantees
//
//   - Within a Group at most one call of a key runs at a time, and across all instances at most one
//     that has not lost its lock.
//   - A caller that gives up does not end the call for the others. When the last one has given up,
//     the context of the call ends.
//   - The context of the call also ends when the lock is lost, the node leaves, or the Group is
//     closed; context.Cause reports which.
//   - Callers get the result as soon as it exists, before the lock is released.
//   - Errors are shared, and not cached: the next caller begins a new call.
//   - A key without callers takes no memory.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Each call has one goroutine, on which its
// functions run. All callers get the same value: copy it before you change it. The call uses the
// functions of its first caller and the values of that caller's context. A call must not call Do
// for its own key, nor Close: it would wait for itself.
//
// # Cancellation
//
// A caller whose context ends returns at once, with the context's cause. The call itself has no
// deadline: give the second function one if it can hang.
//
// # Failure
//
// If the lock is lost (the process was stopped, or cut off for longer than its lease), the context
// of the call ends, and the next instance computes. Stopped code does not see its context: then two
// may compute at the same time, and the older one may write last. The token prevents that if the
// cache stores the highest token with the value and refuses a write with a lower one. A computation
// that succeeds although its lock was lost counts. If the first function fails, nothing is
// computed, or every instance would compute while a cache is down. To compute anyway, return false
// and no error.
//
// If a function panics, every waiting caller panics with a *PanicError; if all have given up, the
// panic is dropped. If a function calls runtime.Goexit, every caller gets an error.
//
// # Limits
//
// Keys are 1 to 512 bytes, as for locks. Waiting instances take the lock one by one, each for the
// time of one cache read.
//
// # Refused alternatives
//
// Handing the value itself from instance to instance: the lock would become a message bus. Caching
// values here: that is the cache's work. Ending the call with its first caller's context: the
// others would get an error that is not theirs.
package flight
