// Package flight lets one caller of a whole fleet compute what many want at the same time, as when
// an entry of a cache has run out: one instance rebuilds it, and all others take what it wrote.
//
//	pages := flight.New[Page](node)
//	defer pages.Close()
//	...
//	page, err := pages.Do(ctx, "page/start",
//		func(ctx context.Context) (Page, bool, error) { return cache.Get(ctx, "start") },
//		func(ctx context.Context, token mortise.Token) (Page, error) { return rebuild(ctx, token) }) // writes it to the cache
//
// Within a process all callers of one key share one call. That call waits for the lock of the key;
// when it has it, it looks whether what it wants is there by now (the first function), and only if
// not it computes (the second), which must leave its result where the first will find it. So the
// first to get the lock computes, and everyone behind it finds the result.
//
// # Guarantees
//
//   - Within a Group at most one call of a key runs at a time, and over all instances at most one
//     that has not lost its lock.
//   - A caller that gives up does not end the call for the others. When the last one has given up,
//     the context of the call ends.
//   - The call ends also when the lock is lost, when the node leaves, and when the Group is closed;
//     its context says which (context.Cause).
//   - The callers have the result as soon as it is there: nobody waits for the release of the lock.
//   - Errors are shared, and not remembered: the next caller begins a new call.
//   - A key that nobody asks for takes no memory.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Each call has one goroutine, which ends when its
// functions return; the functions run in it. All callers get the same value: whoever wants to
// change it copies it first. The call runs with the values of its first caller's context, and with
// the functions of its first caller. A call must not call Do for its own key, nor Close: it would
// wait for itself.
//
// # Cancellation
//
// A caller whose context ends returns at once, with the context's cause. The call itself has no
// deadline of any caller's: give the second function one of its own if it can hang.
//
// # Failure
//
// A lock that is lost (the process was stopped, or cut off for longer than its lease) ends the
// context of the call, and the next instance computes. Code that was stopped does not see its
// context: then two compute at the same time, and the older one may write last. The token prevents
// that, if the cache compares it: it keeps the highest token with the value and refuses a write
// with a lower one. A computation that succeeds although its lock was lost counts: its callers get
// the value. If the first function fails, nothing is computed, since a cache that is down would
// otherwise be answered by everybody computing; to compute nevertheless return false and no error.
//
// A panic of a function reaches every caller that waits as a panic with a *PanicError; if all have
// given up nobody sees it. If a function ends its goroutine (runtime.Goexit) every caller gets an
// error.
//
// # Limits
//
// Those of the locks: keys are 1 to 512 bytes. Instances behind each other take the lock one by
// one, each for the time of a look into the cache: with a hundred instances the last one waits for
// a hundred looks.
//
// # Refused alternatives
//
// Handing the value itself from instance to instance: the lock would become a message bus, and the
// cache is there already. Remembering values here: that is the cache's work. Ending the call with
// its first caller's context: the others would get an error that is not theirs.
package flight
