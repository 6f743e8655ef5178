// Package redsync has the methods of github.com/go-redsync/redsync/v4 over locks of mortise. To try
// mortise in a service that uses redsync, change the import and the argument of [New]:
//
//	rs := redsync.New(node) // was: a pool of Redis connections
//	mutex := rs.NewMutex("report", redsync.WithTries(10))
//	if err := mutex.LockContext(ctx); err != nil { ... }
//	defer mutex.UnlockContext(ctx)
//
// # What differs
//
//   - Without WithExpiry a lock does not expire while its instance runs: its lease is renewed by
//     itself, until Unlock. In redsync the default is 8 s. With WithExpiry the lock is free when
//     the expiry has passed without Extend, as in redsync.
//   - If the process dies, the lock is free when its session has expired
//     (mortise.Config.SessionTTL, 10 s by default), whatever the expiry.
//   - Lock does not poll. It waits in the queue, first come, first served, for as long as all
//     retries of redsync would wait.
//   - [Mutex.Value] is the fencing token, as a decimal number, or the result of WithGenValueFunc,
//     which other instances see as the value of the lock. Another Mutex cannot unlock by it:
//     WithValue is refused. To hand a lock to another process, see mortise.Node.Resume.
//   - Unlock and Extend report a lock that was lost with [ErrLockAlreadyExpired] or
//     [ErrExtendFailed], for code that compares with ==. [Mutex.Err] has the reason.
//   - WithDriftFactor, WithTimeoutFactor, WithFailFast and WithShufflePools have no effect: there
//     is one group, which decides by its majority. ErrTaken.Nodes is always nil.
//
// New here are [Mutex.Err], which has the reasons, [Mutex.Token] and [Mutex.Context]: the token
// fences what is written under the lock, and the context ends when the lock is lost. Left out are
// pools, RedisError and ErrNodeTaken.
//
// # Concurrency
//
// All methods are safe for concurrent use. Each value of Mutex is one holder: two values with one
// name exclude each other.
//
// # Failure
//
// If the group has no leader, TryLock waits for one for 2 s at most, and Lock for the time of its
// retries. The error then wraps [ErrFailed], and is not an [ErrTaken].
//
// # Limits
//
// A name is a key of mortise: 1 to 512 bytes of UTF-8 without control characters.
package redsync
