// Package mortise builds distributed locks into a service: the replicas of the service find each
// other by gossip, the first few of them found an embedded Raft group, and every replica gets
// [Node.Lock] in its own process. There is no lock server to run.
//
//	node, err := mortise.Start(ctx, mortise.Config{Join: addresses, Replicas: 3, Secret: secret})
//	...
//	lock, err := node.Lock(ctx, "orders/42") // waits its turn
//	if err != nil { return err }
//	defer lock.Unlock(ctx)
//	charge(lock.Context(ctx), lock.Token()) // the context ends if the lock is lost; the token fences the resource
//
// [ConfigFromEnv] makes the Config of environment variables. Config.Join takes addresses, names in
// DNS, services (SRV records) and files; what is behind them may change at any time.
//
// # Kinds of locks
//
// [Request] has them all, as fields of one call, [Node.Acquire]: exclusive, shared (readers beside
// each other), a number of permits, and several keys at once, all or none. They stand in one queue
// for each key and are granted by one rule, in order, so no kind starves another. Other fields say
// how: try, how many may wait, for how long it may be held, for how long it stays taken after its
// holder has died, what others are shown, whether the holder is told that somebody waits.
// [Node.Lock], [Node.RLock], [Node.LockAll], [Node.TryLock] and [Node.Do] are short for the usual
// ones.
//
// A request whose context comes from [Lock.Context], or from Do, is made under that lock: what the
// lock covers is entered again, and a circle of those who wait for each other is found and told to
// the last of them, with a *[DeadlockError]. Without that context nothing is known, and nothing is
// entered again: two goroutines of one process that lock the same key exclude each other as two
// machines do.
//
// [Node.Peek], [Node.List] and [Node.Check] tell who holds what and who waits; [Node.ForceUnlock]
// ends what does not end by itself. What can stand on these names has packages of its own: fence,
// election, tick, flight, stripe, locker.
//
// [Hooks] are functions that are told what happens, for metrics, traces and logs;
// adapters/mortiseotel has some for OpenTelemetry. What is better asked than told is in
// [Node.Status].
//
// # Compatibility
//
// Before v1.0.0 a minor version may change the API; CHANGELOG.md names each change. This package
// keeps it within a minor version, and so do election, tick, fence, flight, stripe, locker,
// console, mortisetest, the packages below these and the modules below adapters. All other packages
// of this module may change with any commit. [Version] is the version of this code.
//
// # Guarantees
//
// docs/GUARANTEES.md has each promise with its conditions and the tests that show it. In short: two
// exclusive holds of one key never overlap in the replicated state, [Token] values rise with every
// grant of a key, waiters are served in order, a call that returns an error holds nothing, and a
// minority of the voters may fail. [Lock.Err] reports a loss before another caller can be granted
// the lock.
//
// A process can be stopped between a check and the write that it protects, and no lock service can
// prevent that. A resource that must be safe even then remembers the highest [Token] that it has
// seen, and refuses lower ones.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. A Lock is a value of its own, not a sync.Locker:
// locking can fail, unlocking can fail, and a lock can be lost in between, so every acquisition
// gives a handle that only its holder can release.
//
// # Cancellation
//
// A context bounds waiting. A call whose context ends returns at once, also without a quorum, and
// says what it waited for; its place in the queue is given up in the background. [Lock.Unlock]
// releases even if its context has already ended.
//
// # Failure
//
// A failure of the embedded group ends the locks of this node and not its process, and [Node.Err]
// says why. [Node.Close] waits for every goroutine that the node has started.
//
// # Limits
//
// Keys are 1 to 512 bytes of UTF-8 without control characters, at most 256 in one request. 65,536
// waiters per key, 1,048,576 requests per instance, where one for several keys counts for each,
// 131,072 instances. The number of keys ever used costs nothing: a name disappears with its last
// holder or waiter.
//
// # Refused alternatives
//
// Locks that rest on clocks of several machines agreeing (Redlock), on gossip alone, or on a count
// of members: each of them grants a lock twice when a network is cut. Client-side recipes over a
// replicated map: their waiters infer from what they read that they hold a lock; here the
// replicated state machine itself decides and says so.
package mortise

// version is the release of this code. Between two releases it is that of the next one.
const version = "v0.1.0"

// Version returns the release of this code, as v1.2.3. Between two releases it is that of the next
// one. It is no constant, whose value would be a part of the API that may not change.
func Version() string { return version }
