// Package check is a set of judges that observe a run from outside. Each judge enforces one rule.
// The program that runs a cluster reports its observations to the judges.
//
//   - [Tokens]: the tokens of a key increase.
//   - [Beliefs]: callers that believe at the same time that they hold a key may hold it together.
//   - [Register]: a resource that compares tokens never refuses the holder of the lock, and is not
//     written while readers share the lock.
//   - [FIFO]: locks are granted in the order in which requests were committed.
//   - [Hashes]: replicas that have applied the same entries are equal.
//   - [Raft]: one leader per term, one vote per term and voter, one entry per index.
//   - [Rising]: numbers that must not decrease do not decrease.
//   - [Groups]: there are never two groups that could both grant.
//   - [Members]: a raft ID belongs to one instance, is added to the configuration once and begins
//     empty once; no instance votes twice.
//   - [Served]: after the faults every waiting call is answered; [Left]: when all calls have
//     returned, the state contains only sessions.
//   - [Acks]: an acknowledged operation is in the state of every replica, forever.
//   - [Forced]: only a hold that was named by key and token is ended by force.
//   - [Longest]: a hold with a longest duration ends, and its holder is notified.
//   - [Delays]: a lock with a delay is not free before the delay has passed, under any leader.
//   - [Notices]: a holder that asked for it has been notified of a waiter when its lease is
//     renewed.
//   - [Reentry]: a reentrant lock has one token until its owner has left as often as it has
//     entered.
//
// # The models
//
// Other tools judge a history by one model for each kind of lock. Here all kinds follow one rule
// (see [Terms]), and each judge checks one promise. The models correspond to these judges:
//
//	owner-aware mutex     Beliefs: one owner at a time. Rule "ends" of package history, which knows
//	                      sessions and numbers: only its owner frees it
//	reentrant mutex       Reentry, in the root package's tests: a lock is entered again by its
//	                      handles, and the state has one hold of it
//	fenced mutex          Tokens: a later hold has a higher token; Register: a resource can rely on
//	                      that. Reentry for both: the token is constant within a hold
//	reentrant and fenced  Reentry
//	semaphore             Beliefs and FIFO, with permits: together at most the lowest total that a
//	                      holder names, and a small request is not granted before a large one
//	read/write            the same, where a reader has one permit of any number; Register.Read: no
//	                      write while a reader holds
//	several keys          FIFO: a request is not granted before an earlier one that it would delay;
//	                      package history: one grant has all requested keys
//	deadlock              Served: in the end no call waits for a free key. The deadlock test of
//	                      lockfsm: a refused request would have waited for itself
//
// Package internal/sim uses all judges except Reentry.
//
// # Guarantees
//
// A judge keeps the first violation: every later call and Err return the same error. The text of
// the error does not depend on the order of a map, so a repeated run fails with the same text.
//
// # Concurrency
//
// A judge is not safe for concurrent use. Its caller may guard it with a mutex.
//
// # Failure
//
// A violation is the only error. A report that breaks the rules for reports (such as a time before
// that of an earlier report) is also returned as a violation, so that wrong input cannot pass.
//
// # Limits
//
// Judges keep one record for each key, group or index. They are meant for runs of limited length.
package check
