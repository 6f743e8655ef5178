// Package check is a set of judges that watch a run from outside, each for one rule that has to
// hold. Whoever runs a cluster, be it a simulation, whole nodes in fake time or processes, tells
// them what it sees; none of them looks into the code that it judges.
//
//   - [Tokens]: the tokens of a key rise.
//   - [Beliefs]: those who believe at one time that they hold a key fit beside each other; of a
//     mutex it is one.
//   - [Register]: a resource that compares tokens is written in the order of tokens, and never
//     refuses whoever holds the lock; and nobody writes beside those who share it.
//   - [FIFO]: the locks are granted in the order in which requests were committed, to as many as
//     fit beside each other.
//   - [Hashes]: replicas that have applied the same entries are equal.
//   - [Raft]: one leader a term, one vote a term and voter, one entry an index.
//   - [Rising]: what may only rise, rises.
//   - [Groups]: there are never two groups that could both grant.
//   - [Members]: a raft ID is one instance, one stay in the configuration, one life of its data;
//     nobody votes twice.
//   - [Served]: when the trouble is over, whoever waits is served; [Left]: nothing stays behind.
//   - [Acks]: what a caller was told, the state says too, on every replica, for ever.
//   - [Forced]: only that hold is ended by force which somebody has named, by key and token.
//   - [Longest]: a hold that is to end by itself does so, and its holder knows.
//   - [Delays]: what was locked with a delay is not free before it is over, whoever leads.
//   - [Notices]: a holder who wants to know has been told that somebody waits, as soon as his lease
//     is prolonged.
//   - [Reentry]: who enters again has the token that he has, and nobody else is inside until he has
//     left as often.
//
// # The models
//
// Others describe locks by models, one for each kind, and judge a history by one of them. Here
// every kind is one rule (see [Terms]), and a judge is of a promise, not of a kind. So this is
// where each model is found:
//
//	owner-aware mutex     Beliefs: one owner at a time. That only its owner frees it: rule "ends" of package history, which knows sessions and numbers
//	reentrant mutex       Reentry, in the root package's tests: a lock is entered again by its handles, and the state has one hold of it
//	fenced mutex          Tokens: a later hold has a higher one; Register: what that is for. Reentry for both: constant within a hold
//	reentrant and fenced  Reentry
//	semaphore             Beliefs and FIFO, with permits: together no more than any holder says there are, and a small request passes no large one
//	read/write            the same, a reader being one of any number; Register.Read: nobody has written beside a reader
//	several keys          FIFO: nobody is passed whom that leaves no room; package history: one grant has all the keys that were asked for
//	deadlock              Served: in the end nobody waits for what is free. That whoever is refused would have waited for himself: the twin in lockfsm
//	evicted               Forced; Beliefs and history count such a hold as over at once, since whoever forces takes that upon himself
//	longest hold          Longest; Beliefs: nobody else is granted it before
//	lock-delay            Delays; FIFO and Beliefs: nobody is granted it meanwhile; Left: it ends
//	notice                Notices
//
// Package internal/sim tells all of them but Reentry.
//
// # Guarantees
//
// A judge remembers the first violation: every later call returns the same error, and Err does. The
// text names the rule and what was seen, and no judge says anything that depends on the order of a
// map, so that a run that is repeated fails with the same words.
//
// # Concurrency
//
// None: a judge belongs to whoever calls it. Shells that see things on many goroutines put a mutex
// around it.
//
// # Failure
//
// A violation is the only error. What is reported to a judge against its own rules (time that goes
// back, for one) is a fault of the caller's, and is reported as one: a judge that is fed nonsense
// must not pass.
//
// # Limits
//
// They keep what they compare with: one line a key, group or index. They are meant for runs that
// end.
//
// # Refused alternative
//
// Assertions inside the code: they believe the state that they are part of, and they cannot see two
// nodes at once.
package check
