// Package lockfsm is the replicated state machine of a group. It decides which request holds which
// lock.
//
// Every replica of a group applies the same log to its own [Machine], so all replicas agree. The
// machine is deterministic: it has no clock, no goroutine, no random source and no file. Instead,
// the leader proposes Expire when the time of a session has passed or another Cause ends it, and
// EndGrace when the grace has passed.
//
// The transcripts in testdata show the rules step by step. Begin with testdata/queue.txt.
//
// # What there is
//
// A lock is a queue of entries in the order in which their requests were committed. The first
// entries of the queue hold the lock, up to the first entry that does not fit beside those before
// it. Every entry that does not hold the lock waits for the entry directly before it. Among
// exclusive entries only the first holds the lock:
//
//	orders/42:  [ 7001 holds, token 7002 ] <- [ 7005 waits, watches 7001 ]
//	                                       <- [ 7009 waits, watches 7005 ]
//
// Each entry takes a number of permits and names a total number of permits. An exclusive entry
// takes one permit and names the total 1. A shared entry takes one permit and names an unlimited
// total. The request of a semaphore entry names both numbers. Entries fit beside each other if the
// sum of their permits is at most the lowest total that they name (lock.go). A small request never
// passes a large one, so a waiting writer stops later readers.
//
// A request for several keys has an entry in the queue of each key from the beginning. The machine
// grants the request, with one token, when all its entries may hold their locks. All entries of a
// request have the same revision, and each queue is ordered by revision. So two requests for
// several keys never wait for each other.
//
// A request can name an owner: an earlier request of the same session, during whose hold the new
// request was made. The machine refuses the new request if it would be in a deadlock with the owner
// (circle.go). The owner of an upgrade is its hold, and it can name a second one.
//
// A request for several keys can name a mode for each (mode.go, testdata/modes.txt).
//
// A Downgrade gives the keys of a hold weaker modes (testdata/downgrade.txt). An upgradable
// hold is compatible with shared ones. Its upgrade is an exclusive request with its own token, and
// comes before all requests that wait (testdata/upgrade.txt, testdata/upgrade_deadlock.txt).
//
// A hold can outlive its session by the delay that its request names. During the delay an Acquire
// with the hold's token can resume the hold (resume.go).
//
// A session has the rights of its capability. The machine checks them on each key that a command
// touches, also on the further keys of a hold that is resumed or ended by force (rights.go).
//
// A sticky request becomes a stay when it is granted. Its session keeps a stay after its caller has
// unlocked, and grants the lock to its next callers with tokens that the grant has reserved.
// Several sessions can have a shared stay of one key. A request with Try waits until the sessions
// answer whether a caller holds the lock (stay.go, testdata/stay.txt).
//
// The machine also stores data for keys (put.go, testdata/guard.txt). Each change of a hold or of
// data is an event, which has the same number on every replica (events.go).
//
// A request is identified by its session and its number. The states of a request:
//
//	             Acquire, others are before it,
//	             or the grace lasts
//	(unused) -----------------------------------> waiting --+
//	   |  |                                          |      | Release, Cancel, Evict, Detach,
//	   |  |  Acquire, nothing is in its way,         |      | Attach without it, Close or Expire
//	   |  |  or it resumes a hold                    |      | of its session, another request
//	   |  +------------------------------+           |      | resumes it, or its Try ends
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
// A finished request never becomes live again, and a granted request never waits again. The states
// of a session:
//
//	       Open              Attach(1)           Attach(n > epoch)
//	(none) -----> epoch 0 -------------> epoch 1 -----------------> epoch n ...
//	                 |                      |                          |
//	                 +----------------------+--------------------------+--> over:
//	                                                   Close on this epoch, Expire in its own term
//
// If the session has a hold with a delay, Expire does not end the session but marks it as *gone*. A
// gone session accepts no commands, and its locks stay taken. The leader repeats Expire for each
// delay, the shortest first. The session ends when its last hold ends or is resumed. Detach moves
// one hold to a new session, which is gone from the beginning.
//
// A group that is not founded yet refuses every command except Born. If the charter names a grace,
// the machine queues requests after Born but grants none until EndGrace.
//
// # Guarantees
//
//   - The entries that hold a lock fit beside each other. An exclusive entry holds its lock alone.
//   - Each grant has its own token, and a later grant has a higher token. Tokens, session IDs and
//     the places of entries all come from the revision, which rises with every change of the state.
//     Two replicas of a group at the same revision are equal. The founding time of a group
//     determines its first revision, so a group that is founded later has higher tokens.
//   - Requests are served in the order of the log. A command for one entry never moves another
//     entry back in its queue, except that an upgrade comes before all waiting entries.
//   - Repeating a command has no further effect. The machine recognizes a repeated Open by its
//     nonce while its session exists, and every other command by session, epoch and number. The
//     numbers of a session rise: a command with a number n >= next sets next = n+1. A number below
//     next is live or finished. A finished number never becomes live, even if no command has
//     carried it.
//   - A request is released by number, never by key, so a late Release cannot end a later hold of
//     the key.
//   - Attach synchronizes the client and the machine. The machine refuses later commands of earlier
//     attachments, and cancels requests that Attach does not name. The result of Attach lists every
//     live request. Any other number that Attach named is finished.
//   - Apply returns a result for any bytes and does not panic. Equal logs give equal results and
//     snapshots, byte for byte, even if a replica was restored from a snapshot on the way.
//
// # Rules versions
//
// Replicas run different builds during an upgrade. Each command therefore names the lowest version
// of the rules that defines it. The leader proposes Raise when all instances run a build that has
// the new version. Every build refuses a command of a higher version than the one in force, before
// it decodes the rest of the command. If Raise names a version that a machine does not have, the
// machine fails.
//
// A new version may add kinds of commands, add state for them, and change what existing commands
// do. Until the new version is in force, a build that has it must return the same results and write
// the same snapshots as the older build. If the version in force does not have a kind of command,
// both builds treat commands of that kind as malformed. The code of a new version begins in
// rules.go.
//
// # Decisions where the design left room
//
//   - A refused request (bad key, limits, Try) uses up its number, so its repetition returns
//     Finished. A command that returns Stale, Malformed, Unsupported or NoSession changes nothing.
//   - An Attach is malformed if it names a number at or above its own Number, because a request can
//     still use that number.
//   - Between Open and the first Attach the epoch of a session is 0, and commands with epoch 0 are
//     accepted.
//   - After Adopt has shortened the group's TTL, existing sessions keep their longer TTL. A leader
//     that needs the group's TTL to be the longest must wait for the end of these sessions before
//     it proposes Adopt.
//   - Every Stamp that advances the wall clock takes a revision, so that each revision identifies
//     one state.
//
// # Concurrency
//
// A Machine must be used by one goroutine at a time. The memory that a Result points to is valid
// until the next Apply.
//
// # Failure
//
// Apply reports bad input by a Code. The machine fails after an unknown rules version or an
// exhausted revision counter. A failed machine refuses every command, so it cannot silently
// diverge, and its node must retire. No command and no Restore can lead to a state that breaks the
// invariants in check.go.
//
// # Limits
//
// [Limits] bounds the state. Commands that free something are exempt from every limit. A command
// visits at most 512 entries (work_test.go has the table), besides a few for each key that it names
// or that its requests have, and for each request that it grants, ends or notifies, each once.
// Close, Expire and Attach visit all entries of their session. A lock with more than 32 inside
// entries has an index (index.go). A search for a deadlock ends at a bound, and the leader goes on
// outside the state (unsearched.go).
//
// While a [Capture] is under way, the first command that changes a lock takes time in proportion to
// the lock's queue, and so does the Step that writes the lock.
//
// # Refused alternatives
//
// In etcd's recipe each client watches the key of its predecessor and determines itself whether it
// is next. Here the machine decides, so a client never handles a lost watch or a cancelled
// predecessor.
//
// A set of finished numbers could recognize repetitions, but the set grows while one old request is
// live. Rising numbers need one counter per session. A request is lost if a higher number is
// applied first, which happens only across attachments.
//
// A snapshot could copy the whole state at once, but this would stop grants during the copy.
//
// If the deadlines of sessions were in the state, every renewal would cost a log entry.
package lockfsm
