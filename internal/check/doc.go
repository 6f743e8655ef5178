// Package check is a set of judges that watch a run from outside, each for one rule that has to hold. Whoever runs a cluster, be it a
// simulation, whole nodes in fake time or processes, tells them what it sees; none of them looks into the code that it judges.
//
//   - [Tokens]: the tokens of a key rise.
//   - [Beliefs]: those who believe at one time that they hold a key fit beside each other; of a mutex it is one.
//   - [Register]: a resource that compares tokens is written in the order of tokens, and never refuses whoever holds the lock; and nobody
//     writes beside those who share it.
//   - [FIFO]: the locks are granted in the order in which requests were committed, to as many as fit beside each other.
//   - [Hashes]: replicas that have applied the same entries are equal.
//   - [Raft]: one leader a term, one vote a term and voter, one entry an index.
//   - [Rising]: what may only rise, rises.
//   - [Groups]: there are never two groups that could both grant.
//   - [Members]: a raft ID is one instance, one stay in the configuration, one life of its data; nobody votes twice.
//   - [Served]: when the trouble is over, whoever waits is served; [Left]: nothing stays behind.
//   - [Acks]: what a caller was told, the state says too, on every replica, for ever.
//
// # Guarantees
//
// A judge remembers the first violation: every later call returns the same error, and Err does. The text names the rule and what was
// seen, and no judge says anything that depends on the order of a map, so that a run that is repeated fails with the same words.
//
// # Concurrency
//
// None: a judge belongs to whoever calls it. Shells that see things on many goroutines put a mutex around it.
//
// # Failure
//
// A violation is the only error. What is reported to a judge against its own rules (time that goes back, for one) is a fault of the
// caller's, and is reported as one: a judge that is fed nonsense must not pass.
//
// # Limits
//
// They keep what they compare with: one line a key, group or index. They are meant for runs that end.
//
// # Refused alternative
//
// Assertions inside the code: they believe the state that they are part of, and they cannot see two nodes at once.
package check
