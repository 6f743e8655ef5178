// Package redislock has the methods of github.com/bsm/redislock over locks of mortise. To try
// mortise in a service that uses redislock, change the import and the argument of [New]:
//
//	locker := redislock.New(node) // was: a client of Redis
//	lock, err := locker.Obtain(ctx, "report", time.Minute, nil)
//	if err == redislock.ErrNotObtained { ... }
//	defer func() { _ = lock.Release(ctx) }()
//
// # What differs
//
//   - The TTL limits the hold, as in redislock: when it has passed without Refresh, the lock is
//     free. Beside that the lock ends if the instance is cut off from the group for longer than
//     mortise.Config.SessionTTL, 10 s by default. If the process dies, the lock is free when this
//     time has passed, even if the TTL is longer.
//   - Obtain with a RetryStrategy does not poll. It waits in the queue, first come, first served,
//     for as long as all retries would wait. If ctx has no deadline, it waits for at most the TTL,
//     as in redislock.
//   - [Lock.Token] is the fencing token, as a decimal number. Options.Token is refused: in
//     redislock a second Obtain with the same token gets the same lock. With mortise, pass the
//     context of the lock, or use mortise.Node.Resume.
//   - [Lock.TTL] and [Lock.Refresh] send nothing: the lease of the node decides.
//
// New here are [Client.Failed] and [Lock.Err], which have the reasons, and [Lock.Fence] and
// [Lock.Context]: the token fences what is written under the lock, and the context ends when the
// lock is lost. Left out is the field Client of a Lock.
//
// # Concurrency
//
// All methods are safe for concurrent use. The strategies of this package are, too.
//
// # Failure
//
// If the group has no leader, Obtain without retries waits for one for 2 s at most. The error is
// then not ErrNotObtained, as when Redis cannot be reached.
//
// # Limits
//
// A key has 1 to 512 bytes of UTF-8 without control characters, and the metadata at most 1,024
// bytes.
package redislock
