// Package concurrency has the methods of go.etcd.io/etcd/client/v3/concurrency over locks of
// mortise. To try mortise in a service that uses it, change the import and the first argument of
// [NewSession]:
//
//	session, err := concurrency.NewSession(node) // was: a client of etcd
//	defer session.Close()
//	mutex := concurrency.NewMutex(session, "orders/42")
//	if err := mutex.Lock(ctx); err != nil { ... }
//	defer func() { err = errors.Join(err, mutex.Unlock(ctx)) }()
//
// # What differs
//
//   - Two values of Mutex exclude each other, even in one session and with one prefix. In etcd they
//     are one holder. A Mutex that is locked twice stays locked, as in etcd.
//   - A prefix is the whole key. A Mutex and an Election with one prefix exclude each other.
//   - The TTL of a session is at most mortise.Config.SessionTTL of the group, 10 s by default.
//     Without WithTTL it is that.
//   - Unlock returns an error if the lock was lost before. In etcd it deletes a key that may be
//     gone.
//   - When the context of WithContext ends, Done is closed, and the locks stay taken until Close or
//     Unlock. In etcd they expire.
//   - Lock in a session that has ended returns [ErrSessionExpired] at once. Waiting calls do, too.
//
// # What is left out
//
// Types of etcd: Client, Header, IsOwner. Instead of a transaction with IsOwner, pass [Mutex.Token]
// to the resource, and let it refuse lower tokens (package fence of mortise). Also left out are
// Orphan, WithLease and ResumeElection, for which mortise has Request.LockDelay, Lock.Detach and
// Node.Resume; NewLocker, whose methods cannot report a loss; and STM, since mortise is no
// database.
//
// New here are [Mutex.Token], [Mutex.Context] and [Mutex.Err], and the same methods of [Election].
// The errors of this package are returned as they are, for code that compares with ==; Err has the
// cause.
//
// # Concurrency
//
// All methods are safe for concurrent use. A Session uses a goroutine until it is closed or lost.
// [Election.Observe] uses one, for which [Session.Close] waits.
//
// # Failure
//
// If the process dies, its locks are free when the session has expired. A call waits for a leader
// until its context ends.
//
// # Limits
//
// A node can have 128 sessions. One whose locks were lost needs no Close, as in etcd. A session
// holds one lock with a random key below "concurrency/session/", whose end is the end of the
// session.
package concurrency
