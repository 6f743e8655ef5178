// Package mortisekubernetes elects the leader among the instances of a controller or a service,
// with the electors of client-go and of controller-runtime, and with locks of mortise. No Lease
// object, no role for it and no API server is needed.
//
//	lock := mortisekubernetes.New(node, "leader/orders", podName, mortisekubernetes.Options{})
//	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{Lock: lock, ...})
//
// For controller-runtime, set manager.Options.LeaderElection and
// LeaderElectionResourceLockInterface.
//
// # How a record and a lock fit together
//
// A [Lock] is a resourcelock.Interface: a record that candidates compare and replace. With a
// Lease, this record is all that there is. Each candidate takes the leadership when its own clock
// says that the record has not changed for LeaseDuration, so a candidate with a fast clock takes
// it from a leader that works. Here the record is the value of a lock of mortise. It exists as
// long as the lock is held, and only the holder can replace it. Create takes the lock, and fails
// while another candidate has it. Update of a candidate that does not hold the lock fails, even
// if its clock says that the holder is gone.
//
// # Guarantees
//
//   - At most one candidate at a time holds the lock. The clocks of the other candidates have no
//     influence on that.
//   - An elector that loses its lock stops before the next one begins to lead, also if it is cut
//     off. For that, RenewDeadline and RetryPeriod together are at most LeaseDuration, as they
//     are by default, and the process is not stopped for longer, for example by a debugger.
//   - [Lock.Held] has a fencing token that rises with every leadership, and a context that ends
//     when the lock is lost, before the next candidate is granted the lock.
//   - LeaderElector.IsLeader is true only while the candidate holds the lock: not after a loss, not
//     after the end of the leadership, and not because another process has the same identity.
//   - A leader whose elector has released the lock is followed at the next try of another
//     candidate, after RetryPeriod at most, with the jitter of client-go.
//
// # Concurrency
//
// Everything exported is safe for concurrent use, but a Lock is for one elector at a time. The
// package starts no goroutine.
//
// # Failure
//
// If the leader is killed or cut off, the lock stays taken until its session has expired
// (mortise.Config.SessionTTL, 10 s by default) and for the LockDelay after that. By default this
// is the LeaseDuration, 15 s, and a second. If all work of the leader ends with the context of
// Held, the delay is not needed: see [Options].LockDelay.
//
// If a leader loses its lock, its elector cannot take it again. It stops when RenewDeadline has
// passed. ForceUnlock ends the hold without a delay, so stop the leader first.
//
// Stop the elector before Node.Leave, which waits for held locks. An elector without
// ReleaseOnCancel leaves the lock taken for the LockDelay.
//
// # Limits
//
// The record is gone when the lock is free, so LeaderTransitions counts from zero with each
// leader; the token of Held rises instead. When a group in memory has lost its majority and a new
// group is founded, set mortise.Config.Grace to LeaseDuration or more, if that is longer than
// SessionTTL, so that electors of the old group have stopped. The coordinated elections of
// client-go, which are alpha, need the API server and do not work. A candidate with a Lease and
// one with a Lock do not exclude each other: stop all of the one kind before you start the other.
//
// A process that is started again waits until its former lock is free, even with the same
// identity. Until then it sees its former self as "NAME (another process)". An elector whose Run is
// called a second time takes itself for the leader until its first answer; make a new one. Each
// renewal is a write of the group, so choose no RetryPeriod of milliseconds.
//
// # Refused alternative
//
// The record could be data of a key (mortise.Node.Put), without a lock. That is what a Lease is:
// the clocks of the candidates then decide when a leader is gone. In a program without client-go,
// use package election: its candidates wait in a queue.
package mortisekubernetes
