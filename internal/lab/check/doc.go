// Package check is a set of judges that observe a run. Each judge enforces one rule. The program
// that runs a cluster reports its observations to them.
//
//   - [Tokens]: a later grant of a key has a higher token.
//   - [Beliefs]: if several callers believe at the same time that they hold a key, they may hold
//     it together.
//   - [Register]: a resource that compares tokens never refuses the holder of the lock.
//   - [FIFO]: locks are granted in the order in which requests were committed.
//   - [Hashes]: replicas that have applied the same entries are equal.
//   - [Raft]: one leader per term, one vote per term and voter, one entry per index.
//   - [Rising]: the term, the indexes and the revision of a replica never fall.
//   - [Groups]: there are never two groups that could both grant locks.
//   - [Members]: a raft ID is used once, and no instance votes twice.
//   - [Served]: after the faults have ended, every waiting call is answered.
//   - [Left]: after the last call, only sessions remain in the state.
//   - [Acks]: an acknowledged operation is in the state of every replica that has applied it.
//   - [Forced]: only a hold that was named by key and token is ended by force.
//   - [Longest]: a hold with a longest duration ends when this duration has passed, and its
//     holder is notified.
//   - [Delays]: a lock with a delay is not free before the delay is over, under any leader.
//   - [Notices]: a holder that asked for notices is notified of a waiter.
//   - [Reentry]: a reentrant lock has the same token until its owner has left it as often as the
//     owner has entered it.
//
// # The models
//
// Other tools judge a history with one model for each kind of lock. The models correspond to these
// judges:
//
//	owner-aware mutex     Beliefs; rule "ends" of package history: only the owner frees it
//	reentrant mutex       Reentry, in the root package's tests
//	fenced mutex          Tokens; Register: a resource can rely on tokens
//	reentrant and fenced  Reentry
//	semaphore             Beliefs and FIFO, with permits
//	read/write            Beliefs and FIFO; Register.Read: no write while a reader holds
//	several keys          FIFO; package history: one grant has all requested keys
//	deadlock              Served: in the end no call waits for a free key. The deadlock test of
//	                      lockfsm: a refused request would have waited for itself
//
// Package internal/lab/sim uses all judges except Reentry.
//
// # Guarantees
//
// A judge keeps the first violation: every later call and Err return the same error. The text of
// the error does not depend on the order of a map, so a repeated run fails with the same text.
//
// # Concurrency
//
// The zero value of a judge is ready for use, except that [Delays], [Longest] and [Served] have a
// field to set. A judge is not safe for concurrent use.
//
// # Failure
//
// A violation is the only error. A wrong report, for example with a time before that of an earlier
// report, is also a violation.
//
// # Limits
//
// Judges keep one record for each key, group or index, so a run must be short enough for memory.
package check
