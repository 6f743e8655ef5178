// Package check is a set of judges that watch a run from outside. Each enforces one rule. The
// program that runs a cluster, be it a simulation, whole nodes in fake time or processes, reports
// to them what it observes.
//
//   - [Tokens]: the tokens of a key rise.
//   - [Beliefs]: the callers that believe at one time to hold a key fit beside each other.
//   - [Register]: a resource that compares tokens never refuses the holder of the lock, and is not
//     written while readers share it.
//   - [FIFO]: locks are granted in the order in which requests were committed.
//   - [Hashes]: replicas that have applied the same entries are equal.
//   - [Raft]: one leader a term, one vote a term and voter, one entry an index.
//   - [Rising]: numbers that may only rise do so.
//   - [Groups]: there are never two groups that could both grant.
//   - [Members]: a raft ID has one instance, one stay in the configuration and one life of its
//     data; no instance votes twice.
//   - [Served]: after the faults every waiting call is served; [Left]: nothing is left over.
//   - [Acks]: what a caller was told is in the state of every replica, forever.
//   - [Forced]: only a hold that was named by key and token is ended by force.
//   - [Longest]: a hold with a longest duration ends, and its holder is told.
//   - [Delays]: a lock with a delay is not free before the delay is over, under any leader.
//   - [Notices]: a holder that asked for it has been told of a waiter when its lease is renewed.
//   - [Reentry]: a reentrant lock has one token until its owner has left as often as it has
//     entered.
//
// # The models
//
// Others judge a history by one model for each kind of lock. Here all kinds follow one rule (see
// [Terms]), and each judge is for a promise. The models correspond to:
//
//	owner-aware mutex     Beliefs: one owner at a time. Rule "ends" of package history, which knows
//	                      sessions and numbers: only its owner frees it
//	reentrant mutex       Reentry, in the root package's tests: a lock is entered again by its
//	                      handles, and the state has one hold of it
//	fenced mutex          Tokens: a later hold has a higher one; Register: what that is for. Reentry
//	                      for both: constant within a hold
//	reentrant and fenced  Reentry
//	semaphore             Beliefs and FIFO, with permits: together at most the lowest total that a
//	                      holder names, and a small request passes no large one
//	read/write            the same, a reader being one of any number; Register.Read: no write while
//	                      a reader holds
//	several keys          FIFO: no request is passed by one that takes its room; package history:
//	                      one grant has all requested keys
//	deadlock              Served: in the end no call waits for a free key. The twin in lockfsm: a
//	                      refused request would have waited for itself
//	evicted               Forced; Beliefs and history count such a hold as over at once, since the
//	                      operator that forces it accepts that
//	longest hold          Longest; Beliefs: it is not granted to another before
//	lock-delay            Delays; FIFO and Beliefs: it is not granted meanwhile; Left: it ends
//	notice                Notices
//
// Package internal/sim uses all of them except Reentry.
//
// # Guarantees
//
// A judge keeps the first violation: every later call and Err return the same error. Its text does
// not depend on the order of a map, so a repeated run fails with the same text.
//
// # Concurrency
//
// None: a judge belongs to its caller, which may put a mutex around it.
//
// # Failure
//
// A violation is the only error. A report that violates the judge's own rules (time that goes back,
// for one) is also returned as a violation: a judge with wrong input must not pass.
//
// # Limits
//
// Judges keep one record for each key, group or index. They are meant for runs that end.
//
// # Refused alternative
//
// Assertions inside the code trust the state that they are part of, and cannot see two nodes at
// once.
package check
