// Package lockfsm is the replicated state machine of a group: a pure, deterministic function that
// decides which request holds which lock.
//
// Every replica of a group applies the same log to its own [Machine], so all replicas agree. The
// machine has no clock, no goroutine, no random source and no file. Time reaches it as commands of
// the leader: Expire when a session has run out of time, EndGrace when the grace is over.
//
// The transcripts in testdata show the rules step by step. Begin with testdata/queue.txt.
//
// # What there is
//
// A lock is a queue of entries in the order in which their requests were committed. It exists while
// it has an entry or data (data.go). The entries that fit beside each other, counted from the
// front, hold the lock. Every other entry waits for the one directly before it. Among exclusive
// entries only the first holds the lock:
//
//	orders/42:  [ 7001 holds, token 7002 ] <- [ 7005 waits, watches 7001 ]
//	                                       <- [ 7009 waits, watches 7005 ]
//
// Each entry takes some permits and names the total: an exclusive entry one of one, a shared entry
// one of an unlimited number, a semaphore entry what it asks for. Entries fit beside each other
// while together they take no more than the lowest total that any of them names (lock.go). So a
// waiting writer stops later readers, and a small request never passes a large one.
//
// A request for several keys has an entry in each of their queues from the beginning. It holds them
// all, with one token, once it may hold each. All its entries have the same revision and all queues
// the same order, so no two such requests wait for each other.
//
// A request can name its owner: the request under whose lock it was made. The machine refuses a
// request that would close a circle of requests that wait for each other (circle.go).
//
// A hold can outlive its session by the delay that its request asks for. During that delay an
// Acquire that names its token can resume it (resume.go).
//
// Changes of holds and data have the same numbers on every replica. The latest are kept for
// watchers (events.go).
//
// An entry is named by (session, number). The states of a request:
//
//	             Acquire, others are before it,
//	             or the grace lasts
//	(unused) -----------------------------------> waiting --+
//	   |  |                                          |      | Release, Cancel, Evict, Detach,
//	   |  |  Acquire, nothing is in its way,         |      | Attach without it, Close or Expire
//	   |  |  or it resumes a hold                    |      | of its session, or another request
//	   |  +------------------------------+           |      | resumes it
//	   |                                 |           |      v
//	   |                                 |           |   finished
//	   |                                 v           |      ^
//	   |                              granted <------+      |
//	   |                                 |   it fits now,   |
//	   |                                 |   or EndGrace    |
//	   |                                 +------------------+ the same again
//	   |
//	   +--> finished: Acquire refused (bad key, limits, Try), Release or Cancel ahead of its
//	        Acquire, or a higher number came first
//
// A finished request never comes back, and a granted one never waits again. The states of a
// session:
//
//	       Open              Attach(1)           Attach(n > epoch)
//	(none) -----> epoch 0 -------------> epoch 1 -----------------> epoch n ...
//	                 |                      |                          |
//	                 +----------------------+--------------------------+--> over:
//	                                                   Close on this epoch, Expire in its own term
//
// Expire leaves a session *gone* instead if it holds something with a delay. A gone session accepts
// no commands, and those locks stay taken. Expire is repeated for each delay, the shortest first.
// The session is over when its last hold has been resumed or has ended. Detach moves one hold to a
// new session that is gone from the beginning.
//
// An unborn group refuses every command but Born. After Born it is in grace, if its charter has
// one: requests queue and nothing is granted until EndGrace. Adopt can change the TTL, the budgets
// and the settings of its charter, and Raise the version of the rules. The rest is fixed.
//
// # Guarantees
//
//   - The entries that hold a lock fit beside each other; an exclusive one is alone.
//   - Each grant has its own token, and a later grant has a higher one. Tokens, session IDs and the
//     places of entries all come from one counter, the revision, which rises with every change of
//     the state. Two replicas of a group at the same revision are equal. The counter starts at the
//     founding time, so a group founded later starts above this one.
//   - Requests are served in the order of the log. No command on other entries moves an entry back.
//   - A command wakes exactly the requests whose state it changes. Result.Fired, computed after all
//     removals of the command, lists those that it granted and those that now have another
//     predecessor.
//   - Repeating a command has no further effect. Open is recognized by its nonce while that session
//     lives, everything else by session, epoch and number. The numbers of a session rise: a command
//     with a number n >= next sets next = n+1. A number below next is live or finished; if it is
//     not live, no command can revive it, even if it was never seen.
//   - A request is released by number, never by name, so a late Release cannot hit the next hold.
//   - Attach synchronizes both ends. Its epoch shuts out everything still under way from earlier
//     attachments. Entries that it does not name are cancelled. Its result lists every live number;
//     any other number that it named is finished.
//   - The machine is total: Apply returns a result for any bytes and does not panic. Equal logs
//     give equal results and snapshots, byte for byte, even if a replica was restored from a
//     snapshot on the way.
//
// # Rules versions
//
// Replicas run different builds during an upgrade. Each command therefore names the lowest rules
// version that knows it. The group has a version in force, which Raise raises when all instances
// run such a build. Old and new builds alike refuse a command above it, before they read anything
// else in it. A machine that is raised beyond what it knows fails: it refuses every command, so it
// cannot silently diverge, and its node must retire. For the same reason limits, TTL and grace are
// in the charter, and wall times travel in commands.
//
// A new version may add kinds of commands, state that they need, and meanings that depend on the
// version in force. Until it is in force, its build must write the same results and snapshots as
// the build before. A kind that the version in force does not have is malformed to both builds,
// since the older one cannot know it. rules.go holds the places for all that. The build tag
// nextrules makes a build with one more version, for upgrade tests.
//
// rules2.go has what version 2 added.
//
// # Decisions where the design left room
//
//   - A refused command (bad key, limits, Try) uses up its number too; its repetition is answered
//     with Finished. A command that is stale, malformed, unsupported or of no session changes
//     nothing at all.
//   - An Attach that names numbers at or above its own next is malformed: "named and not live is
//     finished" could not be kept for them.
//   - An Open repeated for another Opener is answered with NoSession. The leader checks that only
//     the Opener speaks for the session later, see package session.
//   - An Attach without the nonce of its session's Open is answered with NoSession. That stops
//     mistakes, and is no proof of identity.
//   - An Open with an all-zero nonce is malformed, see Nonce.
//   - Between Open and the first Attach a session's epoch is 0, and a command at epoch 0 applies.
//   - A Try is answered with InGrace for every key as long as the grace lasts.
//   - After Adopt of a shorter TTL, older sessions keep a longer one than the group's. A leader
//     that needs the group's TTL to be the longest must wait for them before it adopts.
//   - The settings are opaque, since a later build may put more into them than this one can read.
//   - Every Stamp that advances the wall clock takes a revision, so that a revision names one
//     state.
//
// # Concurrency
//
// A Machine belongs to one goroutine. What a Result points to is valid until the next Apply.
//
// # Failure
//
// Bad input gives a Code; an unknown rules version or an exhausted revision counter gives
// [Machine.Failed]. [Machine.Check] tests the invariants, which are numbered in check.go. No
// command and no Restore can lead to a state that breaks them.
//
// # Limits
//
// Those of [Limits], and records of at most [MaxRecordBytes]. Commands that free something are
// exempt from all of them. budget.go defines the charges against the budgets of bytes. Removing an
// entry takes constant time, with one exception: if it is the last holder of a semaphore that names
// the lowest total, the other holders are visited. Ending a session takes time in proportion to its
// entries, plus the sorting of the entries that this wakes. Revisions last for two billion changes
// a second until the year 2109.
//
// While a [Capture] is under way, the first command that changes a lock takes time in proportion to
// its queue, and so does the step that reaches it. The capture holds the snapshot's bytes once, and
// once more during AppendTo.
//
// # Refused alternatives
//
// Clients that infer which request is next. In etcd's recipe a client watches its predecessor's
// key. Then every client must handle watches that are armed too late or lost with a leader, and
// predecessors that give up in the middle of the queue. Here the machine decides once which request
// is granted, and the next Attach repeats what a client has missed.
//
// A set of finished numbers for deduplication. It grows as long as one old request lives. Numbers
// that only rise need one counter per session. The price: a request overtaken by a higher number is
// lost. That happens only across attachments, where the result of Attach reports it.
//
// Release by name, which can hit the wrong hold, or by name and token, which cannot name a waiting
// request.
//
// A snapshot from a full copy, which stops grants while it is made, or from persistent data
// structures, which cost every command an allocation. Copy on write costs only what changes while a
// snapshot is taken.
//
// Holds without a session, with a lifetime of their own. They would need a second kind of expiry;
// as part of a gone session they end by Expire.
//
// Events in the snapshot. Every snapshot would carry as many events as a watch might ask for, and a
// watch must handle missed events anyhow.
//
// Sessions that expire by a deadline in the state. Every renewal would cost a log entry. Deadlines
// in the leader's memory cost none, and a new leader starts them anew.
package lockfsm
