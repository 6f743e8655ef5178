// Package lockfsm is the rules of a group: a pure, deterministic state machine that says who holds
// which lock.
//
// Every replica of a group feeds the same log of commands to a [Machine] of its own, and so all
// replicas agree on everything below. The machine has no clock, no goroutine, no random source and
// no file. What it must know about time comes to it as commands: a leader that has watched a
// session run out of time commits Expire, one that has counted the grace commits EndGrace.
//
// The transcripts in testdata are the rules as a conversation: each step a command, then its result
// and the whole state. Begin with testdata/queue.txt.
//
// # What there is
//
// A lock is a queue of entries in the order in which their requests were committed. It exists while
// it has an entry, or data (data.go); nothing is kept of names that nobody uses. Those entries hold
// the lock that fit beside each other, counted from the first, all others wait, each for the one
// directly before it. Of the ordinary, exclusive ones that is the first alone:
//
//	orders/42:   [ 7001 holds, token 7002 ] <- [ 7005 waits, watches 7001 ] <- [ 7009 waits, watches 7005 ]
//
// Each entry takes some permits and says how many there are: an exclusive one takes one of one, a
// shared one one of any number, that of a semaphore so many of so many. Entries fit beside each
// other while they take together no more than any of them says there are (lock.go). So a writer who
// waits stops the readers who come later, and a small request never passes a large one.
//
// A request for several keys has an entry in each of their queues, all of one revision, from the
// beginning, and holds them when it may hold each, with one token. Since all queues have the same
// order, no two such requests wait for each other.
//
// A request can name the one under whose lock it was made, its owner. A circle of requests that
// wait for each other is found when the last one closes it, and that one is refused (circle.go).
//
// A hold can outlive the session that has it, for a delay that its request asks for, and be taken
// up by an Acquire that names its token (takeup.go).
//
// What happens to holds and to data is numbered, alike on every replica, and the last of it is kept
// for those who watch (events.go).
//
// An entry is the request of one session, named by (session, number). It is made by Acquire and
// goes by Release, Cancel, Detach, an Attach that does not name it, or the end of its session.
// These are the states of a request:
//
//	             Acquire, somebody is before it,
//	             or the grace lasts
//	(unused) ------------------------------------> waiting --+
//	   |  |                                           |      | Release, Cancel, Attach without it,
//	   |  |  Acquire, nobody is in its way,           |      | Close or Expire of its session, Evict, Detach,
//	   |  |  or it takes up a hold                    |      | or another takes it up
//	   |  +------------------------------+            |      v
//	   |                                 |            |   finished
//	   |                                 v            |      ^
//	   |                              granted <-------+      |
//	   |                                 |   it fits now,    |
//	   |                                 |   or EndGrace     |
//	   |                                 +-------------------+ the same again
//	   |
//	   +--> finished: Acquire refused (bad key, limits, Try), Release or Cancel ahead of its Acquire,
//	        or a higher number came first
//
// There is no way back from finished and none from granted to waiting. These are the states of a
// session:
//
//	        Open                 Attach(1)              Attach(n > epoch)
//	(none) ------> epoch 0 --------------> epoch 1 -------------------------> epoch n ...
//	                  |                       |                                  |
//	                  +-----------------------+----------------------------------+--> over: Close on this epoch,
//	                                                                                  Expire in its own term
//
// If it holds something with a delay, Expire leaves it gone: nobody speaks for it, those locks stay
// taken, and Expire comes again for each of the delays, the shortest first: when none is left it is
// over, or before, when the last of them is taken up or ended. Detach makes a session that is gone
// from the beginning, for one hold.
//
// And the group: unborn, where every command but Born is refused; then in grace, where requests
// queue and nothing is granted; then, after EndGrace or at once if the charter has no grace, as
// usual. Of its charter Adopt can change the TTL, the budgets and the settings, and Raise the
// version of the rules; all else is for ever.
//
// # Guarantees
//
//   - Those that hold a lock fit beside each other: of exclusive entries there is one.
//   - Each grant has a token of its own, and a later grant's is higher. Tokens, session IDs and the
//     places of entries are all taken from one counter, the revision, which rises with every change
//     of the state: two replicas of a group that stand at the same revision are equal. It starts at
//     the founding time, so a group founded later starts above this one.
//   - First come, first served, by order in the log. Nothing that happens to others moves an entry
//     back.
//   - A command wakes exactly those whose state it changes. Result.Fired lists those that it
//     granted and those whose predecessor is now another, worked out after everything that the
//     command removes is gone.
//   - Doing a thing twice does it once. Open is known by its nonce, while that session lives;
//     everything else by session, epoch and number. A session's numbers rise; next is the lowest
//     that is still free. A command with a number n >= next sets next = n+1. Below next a number is
//     live or finished, and no command can revive it, whether or not the number was ever seen.
//   - A request is given up by number, never by name: a late Release cannot hit the next hold of
//     the same lock.
//   - Attach settles everything at once: its epoch shuts out all that was sent on earlier
//     attachments and is still under way; entries that it does not name are cancelled; its result
//     states every live number, and what it named beyond that is finished.
//   - The machine is total: Apply has a result for all bytes, and does not panic. Equal logs give
//     equal results and, byte for byte, equal snapshots, also if a replica was restored from a
//     snapshot on the way.
//
// # Rules versions
//
// Replicas run different builds during an upgrade. Each command therefore names the lowest rules
// version that knows it, and the group has a version in force, raised by Raise when all builds are
// there. A command above the version in force is refused alike by old and new builds, before
// anything else in it is read. A machine that is asked to go beyond what it knows fails, and its
// node must retire: it refuses everything from then on, so it cannot part from the others unseen.
// For the same reason limits, TTL and grace are in the charter, wall times travel in commands, and
// nothing is read from the surroundings.
//
// A new version may add kinds of commands, state that they need, and meanings that depend on the
// version in force. Until it is in force its build must give the same bytes as the build before,
// results and snapshots; a kind that comes under a version which does not have it is malformed to
// both, since the older one cannot know better. The places for all that are in rules.go. The build
// tag nextrules makes a build that knows a version more, with which upgrades are tested.
//
// Version 2 has added the Value of a Detach: why a hold ends, or is left for its delay, that its
// holder has not given back. Its events are Expired, and such an end is kept in the state with
// those by force. And circles of requests are found that lead through permits (circle_permits.go).
//
// # Decisions where the design left room
//
//   - A number is used up also by a command that is refused (bad key, limits, Try); a repetition of
//     it is told Finished. A command that is stale, malformed, unsupported or of no session changes
//     nothing at all.
//   - An Attach that names numbers at or above its own next is malformed: "named and not live is
//     finished" could not be kept for them.
//   - A session belongs to its Opener, the instance and the capability that the leader writes into
//     the Open from the connection. An Open that is repeated for another Opener is answered with
//     NoSession. The machine does not see the sender of later commands: that only the Opener speaks
//     for the session is checked by the leader, see package session.
//   - An Attach must bring the nonce of its session's Open, else it is answered with NoSession.
//     That keeps a mistaken instance out. It is no proof, since every voter and every snapshot has
//     the nonce.
//   - An Open with an all-zero nonce is malformed, since two openers that forgot theirs would share
//     a session and its locks.
//   - Between Open and the first Attach a session's epoch is 0, and a command at epoch 0 applies,
//     by the rule for all epochs.
//   - A Try is answered InGrace as long as the grace lasts, for every name.
//   - Adopt leaves every session that lives its TTL, since the client counts on what it was told,
//     and cannot be told at once. So after a shorter one is adopted there may be sessions above the
//     group's. Whoever takes the group's for the longest waits for them before he adopts.
//   - The settings are opaque: the rules do not need them, and a later build may say more in them
//     than this one can read. An Adopt that changes nothing takes no revision, so a leader may
//     repeat it.
//   - Every stamp that advances the wall clock takes a revision, so that a revision names one state
//     exactly.
//
// # Concurrency
//
// A Machine belongs to one goroutine. Commands and charters are values. What a Result points to
// lasts until the next Apply. A [Capture] belongs to the Machine's goroutine until its last Step,
// and from then on shares nothing with it.
//
// # Failure
//
// Bad input gives a Code, an unknown rules version gives [Machine.Failed]. [Machine.Check] tests
// the invariants, which are numbered in check.go. A state in which they do not hold cannot be
// reached by commands, and Restore does not return one.
//
// # Limits
//
// Those of [Limits], and records of at most [MaxRecordBytes]. Commands that free something are
// exempt from all of them. The budgets of bytes are charged by the rules of budget.go. Removing an
// entry takes constant time wherever it stands in its queue, unless it is the last holder of a
// semaphore to name the lowest number of permits, when the others are asked; ending a session takes
// time in proportion to its entries, and the sorting of those that this wakes. Revisions last for
// two billion changes a second until the year 2109.
//
// While a [Capture] is under way, the first command that changes a lock encodes it, which takes
// time in proportion to its queue, and so does the step that comes to it. Together they keep the
// snapshot's bytes once, and once more while AppendTo puts them together.
//
// # Refused alternatives
//
// Clients that infer who is next. In etcd's recipe a client lists the queue and watches its
// predecessor's key; whether the watch was armed in time, what it means if the predecessor gave up
// in the middle of the queue, and what happens when the watch is lost with a leader, every client
// must get right. Here the queue is the watch: who is granted is decided once, where everybody
// agrees, and what is lost on the way to a client is stated again by its next Attach.
//
// A set of finished numbers for deduplication. It grows as long as one old request lives, in memory
// and in every snapshot. Numbers that only rise need one counter per session; the price is that a
// request overtaken by a higher number is lost and must be asked for again, which happens only
// across attachments, where Attach tells.
//
// Release by name, or by name and token. The first hits the wrong hold when it is late. The second
// cannot name a request that waits.
//
// A snapshot of a copy, or of a state of which versions are kept. A copy of all stops the grants
// for as long as the copying takes; structures that share what has not changed cost every command
// an allocation or more. To encode first what is about to change costs only what does change while
// a snapshot is taken.
//
// Holds that belong to nobody, with a lifetime of their own. They would need a second way for time
// to end things; as part of a session that is gone they end by the Expire that there is.
//
// Events in the snapshot. A replica that begins with one would know what came before; but every
// snapshot would carry as many events as anybody might ever ask for, so that a watch need not be
// told that it has missed some, which it must be able to hear anyhow.
//
// Sessions that expire by a deadline in the state. Replicated time is a clock that stops with the
// leader and must be written at every renewal; deadlines in the leader's memory cost no log entry,
// and a new leader simply starts them anew.
package lockfsm
