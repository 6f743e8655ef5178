// Package mortise builds distributed locks into a service. The replicas of the service find each
// other, and the first few found an embedded Raft group. Every replica calls [Node.Lock] in its own
// process. There is no lock server to run.
//
//	node, err := mortise.Start(ctx, mortise.Config{Join: addresses, Replicas: 3, Secret: secret})
//	...
//	lock, err := node.Lock(ctx, "orders/42") // waits its turn
//	if err != nil { return err }
//	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
//	charge(lock.Context(ctx), lock.Token()) // the token fences the resource
//
// If the lock is lost, the context that lock.Context returned ends. [ConfigFromEnv] reads a Config
// from environment variables.
//
// # Kinds of locks
//
// [Node.Acquire] takes a [Request]. Its fields select an exclusive lock, a shared one, one that can
// be upgraded, a number of permits, or several keys at once. All requests for a key wait in one
// queue, in order. [Node.Lock], [Node.RLock], [Node.LockAll], [Node.TryLock] and [Node.Do] are
// shorthand for the common cases.
//
// A request is made under a lock if its context comes from [Lock.Context] or from Do. It may enter
// the lock again, and a circle of such requests ends with a *[DeadlockError]; see [Node.Acquire].
// For a request without such a context no deadlock is found, and two goroutines of one process
// exclude each other.
//
// Packages fence, election, shard, presence, barrier, counter, tick, keep, keys, flight and stripe
// build on this API. Module locker has the interface of a lock, for projects that accept locks and
// do not depend on this module. [Hooks] are for metrics, traces and logs; adapters/mortiseotel has
// a set for OpenTelemetry.
//
// # Compatibility
//
// Before v1.0.0, a minor version may change the API; CHANGELOG.md names each change. Within a minor
// version, the API of this package is stable, and so is that of the packages named above, of
// console and mortisetest, of the packages below these, and of the modules below adapters. All
// other packages may change with any commit. Kinds, states and outcomes are strings, in JSON too. A
// later version may add values and fields: ignore a value that you do not know.
//
// # Guarantees
//
// docs/GUARANTEES.md lists each promise with its conditions and its tests. In short: two exclusive
// holds of one key never overlap in the replicated state. [Token] values rise with every grant of a
// key. Waiters are served in order. A call that returns an error holds nothing. A minority of the
// voters may fail. [Lock.Err] reports a loss before another caller can be granted the lock.
//
// A process can be stopped between a check and the write that the lock protects. No lock service
// can prevent that. A resource that must be safe even then remembers the highest [Token] that it
// has received and refuses lower ones.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. A Lock is not a sync.Locker, because locking and
// unlocking can fail, and a lock can be lost in between.
//
// # Cancellation
//
// The context of a call limits how long it waits. If it ends, the call returns immediately, even if
// the group has no quorum. The error names what the call waited for. The request is removed from
// its queue in the background. [Lock.Unlock] releases even if its context has already ended.
//
// # Failure
//
// If the embedded group fails, this node loses its locks, and [Node.Err] returns the cause. The
// process keeps running. [Node.Close] waits for every goroutine that the node has started.
//
// # Limits
//
// A key has 1 to 512 bytes of UTF-8 without control characters; one request may have 256 keys.
// There may be 65,536 waiters per key, 131,072 instances, and 1,048,576 requests per instance,
// where a request counts once for each of its keys. Keys that are not in use cost nothing.
package mortise

const version = "v0.1.0"

// Version returns the release of this code, in the form v1.2.3. Code that is not released yet has
// the version of the next release.
func Version() string { return version }
