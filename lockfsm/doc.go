// Package lockfsm is the replicated state machine of a group: a pure, deterministic function that
// decides which request holds which lock.
//
// Every replica of a group applies the same log of commands to its own [Machine], so all replicas
// agree on everything below. The machine has no clock, no goroutine, no random source and no file.
// Time reaches it as commands: a leader that has watched a session run out of time commits Expire,
// and one that has counted the grace commits EndGrace.
//
// The transcripts in testdata show the rules step by step: each step is a command, its result and
// the whole state. Begin with testdata/queue.txt.
//
// # What there is
//
// A lock is a queue of entries in the order in which their requests were committed. It exists while
// it has an entry, or data (data.go); otherwise nothing is stored about its name. The entries that
// fit beside each other, counted from the front, hold the lock. Every other entry waits for the one
// directly before it. Among exclusive entries only the first holds the lock:
//
//	orders/42:  [ 7001 holds, token 7002 ] <- [ 7005 waits, watches 7001 ]
//	                                       <- [ 7009 waits, watches 7005 ]
//
// Each entry takes some permits and names the total. An exclusive entry takes one of one. A shared
// entry takes one of an unlimited number. A semaphore entry takes as many as it asks for of the
// total that it names. Entries fit beside each other while together they take no more than the
// lowest total that any of them names (lock.go). So a waiting writer stops later readers, and a
// small request never passes a large one.
//
// A request for several keys has an entry in each of their queues from the beginning, all with the
// same revision. It holds them all, with one token, once it may hold each. All queues have the same
// order, so no two such requests wait for each other.
//
// A request can name the request under whose lock it was made, its owner. The machine detects a
// circle of requests that wait for each other when the last of them closes it, and refuses that
// one (circle.go).
//
// A hold can outlive its session by the delay that its request asks for. During that delay an
// Acquire that names its token can resume it (resume.go).
//
// Changes of holds and data are numbered alike on every replica. The most recent ones are kept for
// watchers (events.go).
//
// An entry belongs to the request of one session and is named by (session, number). Acquire makes
// it. Release, Cancel, Detach, an Attach that does not name it, or the end of its session removes
// it. These are the states of a request:
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
// A finished request never comes back, and a granted one never waits again. These are the states of
// a session:
//
//	       Open              Attach(1)           Attach(n > epoch)
//	(none) -----> epoch 0 -------------> epoch 1 -----------------> epoch n ...
//	                 |                      |                          |
//	                 +----------------------+--------------------------+--> over:
//	                                                   Close on this epoch, Expire in its own term
//
// Expire leaves a session *gone* instead if it holds something with a delay. A gone session accepts
// no commands, and those locks stay taken. Expire comes again for each of the delays, the shortest
// first. The session is over when its last hold has been resumed or has ended. Detach makes a
// session that is gone from the beginning, for one hold.
//
// A group is at first unborn and refuses every command but Born. It is then in grace: requests
// queue and nothing is granted. After EndGrace, or at once if the charter has no grace, it grants.
// Adopt can change the TTL, the budgets and the settings of its charter, and Raise the version of
// the rules. The rest of the charter is fixed.
//
// # Guarantees
//
//   - The entries that hold a lock fit beside each other: at most one of them if it is exclusive.
//   - Each grant has its own token, and a later grant has a higher one. Tokens, session IDs and the
//     places of entries all come from one counter, the revision, which rises with every change of
//     the state. Two replicas of a group at the same revision are equal. The counter starts at the
//     founding time, so a group founded later starts above this one.
//   - Requests are served in the order of the log. Nothing that happens to others moves an entry
//     back.
//   - A command wakes exactly the requests whose state it changes. Result.Fired lists those that it
//     granted and those that now have another predecessor. It is computed after all removals of the
//     command.
//   - Repeating a command has no further effect. Open is recognized by its nonce while that session
//     lives, everything else by session, epoch and number. The numbers of a session rise; next is
//     the lowest that is still free. A command with a number n >= next sets next = n+1. A number
//     below next is live or finished, and no command can revive it, even if it was never seen.
//   - A request is given up by number, never by name, so a late Release cannot hit the next hold of
//     the same lock.
//   - Attach synchronizes both ends. Its epoch shuts out everything sent on earlier attachments
//     that is still under way. Entries that it does not name are cancelled. Its result lists every
//     live number, and any other number that it named is finished.
//   - The machine is total: Apply returns a result for any bytes and does not panic. Equal logs
//     give equal results and byte-for-byte equal snapshots, also if a replica was restored from a
//     snapshot on the way.
//
// # Rules versions
//
// Replicas run different builds during an upgrade. Each command therefore names the lowest rules
// version that knows it, and the group has a version in force, which Raise raises when all
// instances run such a build. Old and new builds alike refuse a command above the version in force,
// before they read anything else in it. A machine that is raised beyond what it knows fails: it
// refuses every command from then on, so it cannot silently diverge, and its node must retire. For
// the same reason limits, TTL and grace are in the charter, wall times travel in commands, and the
// machine reads nothing from its environment.
//
// A new version may add kinds of commands, state that they need, and meanings that depend on the
// version in force. Until it is in force, its build must write the same results and snapshots as
// the build before. A kind that arrives under a version without it is malformed to both builds,
// since the older one cannot know it. rules.go holds the places for all that. The build tag
// nextrules makes a build that knows one more version, for upgrade tests.
//
// Version 2 added the Value of a Detach: the reason why a hold ends, or is left for its delay,
// although its holder has not released it. Its events have the cause Expired, and such an end is
// kept in the audit log beside the forced ones. Version 2 also finds circles of requests that lead
// through permits (circle_permits.go).
//
// # Decisions where the design left room
//
//   - A refused command (bad key, limits, Try) uses up its number too; a repetition of it is
//     answered with Finished. A command that is stale, malformed, unsupported or of no session
//     changes nothing at all.
//   - An Attach that names numbers at or above its own next is malformed: "named and not live is
//     finished" could not be kept for them.
//   - A session belongs to its Opener, the instance and the capability that the leader writes into
//     the Open from the connection. An Open repeated for another Opener is answered with NoSession.
//     The machine does not see the sender of later commands: the leader checks that only the Opener
//     speaks for the session, see package session.
//   - An Attach must bring the nonce of its session's Open, else it is answered with NoSession.
//     That keeps a mistaken instance out. It is no proof, since every voter and every snapshot has
//     the nonce.
//   - An Open with an all-zero nonce is malformed, since two openers that forgot theirs would share
//     a session and its locks.
//   - Between Open and the first Attach a session's epoch is 0, and a command at epoch 0 applies,
//     by the rule for all epochs.
//   - A Try is answered with InGrace for every key as long as the grace lasts.
//   - Adopt leaves the TTL of live sessions unchanged: a client counts on the TTL that it was given
//     and cannot be told at once. So after a shorter TTL is adopted, older sessions may have a
//     longer one than the group. A leader that needs the group's TTL to be the longest must wait
//     for them before it adopts.
//   - The settings are opaque: the rules do not need them, and a later build may put more into them
//     than this one can read. An Adopt that changes nothing takes no revision, so a leader may
//     repeat it.
//   - Every Stamp that advances the wall clock takes a revision, so that a revision names one state
//     exactly.
//
// # Concurrency
//
// A Machine belongs to one goroutine. Commands and charters are values. What a Result points to is
// valid until the next Apply. A [Capture] belongs to the Machine's goroutine until its last Step,
// and from then on shares nothing with it.
//
// # Failure
//
// Bad input gives a Code; an unknown rules version or an exhausted revision counter gives
// [Machine.Failed]. [Machine.Check] tests the invariants, which are numbered in check.go. Commands
// cannot reach a state in which they do not hold, and Restore does not return one.
//
// # Limits
//
// Those of [Limits], and records of at most [MaxRecordBytes]. Commands that free something are
// exempt from all of them. budget.go defines the charges against the budgets of bytes. Removing an
// entry takes constant time wherever it stands in its queue, with one exception: if it is the last
// holder of a semaphore that names the lowest total, the other holders are visited. Ending a
// session takes time in proportion to its entries, plus the sorting of the entries that this wakes.
// Revisions last for two billion changes a second until the year 2109.
//
// While a [Capture] is under way, the first command that changes a lock encodes it, which takes
// time in proportion to its queue, and so does the step that reaches it. The capture holds the
// snapshot's bytes once, and once more while AppendTo assembles them.
//
// # Refused alternatives
//
// Clients that infer which request is next. In etcd's recipe a client lists the queue and watches
// its predecessor's key. Every client must then get three things right: whether the watch was armed
// in time, what it means if the predecessor gave up in the middle of the queue, and what happens
// when the watch is lost with a leader. Here the queue is the watch. The machine decides once which
// request is granted, all replicas agree, and the next Attach states again what was lost on the way
// to a client.
//
// A set of finished numbers for deduplication. It grows as long as one old request lives, in memory
// and in every snapshot. Numbers that only rise need one counter per session. The price is that a
// request overtaken by a higher number is lost and must be asked for again. That happens only
// across attachments, where the result of Attach reports it.
//
// Release by name, or by name and token. The first hits the wrong hold when it is late. The second
// cannot name a waiting request.
//
// A snapshot of a full copy or of persistent data structures. A full copy stops grants while it is
// made; persistent structures cost every command an allocation or more. Copy on write costs only
// what changes while a snapshot is taken.
//
// Holds without a session, with a lifetime of their own. They would need a second way for time to
// end things; as part of a gone session they end by the existing Expire.
//
// Events in the snapshot. A restored replica would then know earlier events, but every snapshot
// would carry as many events as a watch might ask for. A watch must handle missed events anyhow.
//
// Sessions that expire by a deadline in the state. Replicated time is a clock that stops with the
// leader and must be written at every renewal. Deadlines in the leader's memory cost no log entry,
// and a new leader simply starts them anew.
package lockfsm
