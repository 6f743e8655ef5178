// Package raftlog is one replica of a replicated log. The leader proposes commands as bytes, and
// every replica applies them in the same order.
//
// The package is a loop around raft's RawNode (go.etcd.io/raft/v3). [Core] is the loop without
// goroutine, clock, disk or network; [Log] is its shell. The user supplies the state machine as an
// [Applier], the disk as a [Store], and the network as functions of [Config]. [Found] and [Join]
// write the beginning of a log, and [Start] runs a replica. There are two Stores: [MemoryStore],
// and the directory of package storage.
//
//	            Propose, Confirm, Change, Step, Campaign ...    (any goroutine)
//	                           │
//	                         inbox                          one slice each, swapped whole
//	                           │ wake
//	tick ──────────────▶ owner goroutine
//	                     ┌───────────┐   Save    ┌──────────┐
//	                     │   Core    │──────────▶│ appender │──▶ Store
//	                     │ (RawNode) │◀──────────│ goroutine│    one Save for all that has gathered
//	                     └───────────┘  Stored   └──────────┘
//	                      │    │    │
//	        1. events     │    │    └── 3. SendSnapshot ──▶ done(ok) ──▶ inbox
//	  Role Apply Leads ◀──┘    └─────── 2. Send, TurnEnd           at the end of the turn,
//	Confirmed Restore                   4. one Step of a snapshot
//	    Configured
//
// A turn takes the whole inbox, runs the Core until it has no more output, and then sends all
// messages at once. All waiting batches become one entry (group commit). All waiting rounds become
// one read request to the followers, and all waiting appends become one Save. A Volatile store has
// no appender: the owner saves within the turn.
//
// A deferrable batch ([Config].Deferrable) only puts requests into queues, so no caller waits for
// it. It is proposed with the next batch that is not deferrable, or alone after 2 to 4 ms. This
// reduces the number of entries and makes the hand-over of a lock 6 to 16 % faster. [Config].Queued
// is called with each batch that enters the queue.
//
// # Snapshots
//
// Taking a snapshot does not block Apply, and writing it does not block appends, but both use
// processor time or disk bandwidth.
//
//	owner        Snapshot, Step ... Step   one step at the end of each turn, between other work
//	snapshotter  AppendTo                  encodes it; from now on it can be sent
//	             Prepare                   stores it, concurrently with Saves
//	appender     Save                      a few bytes that name it; then what it replaces is deleted
//
// A snapshot holds the state, the index and the configuration at the call of Snapshot. There is at
// most one snapshot at a time. A snapshot from another replica is always newer, so it ends the
// snapshot of this replica.
//
// # Roles
//
//	       election timeout, Campaign      a majority votes, own vote durable
//	follower ────────────────▶ candidate ─────────────────────────▶ leading, silent
//	   ▲ ▲                         │                                       │
//	   │ └───── another leads ─────┘            own first entry applied:   │
//	   │                                        Leads                      ▼
//	   └─── a higher term, no majority for an election timeout, Transfer ─ leading
//
// If a leader's streams end, or the leader reports that it has retired, the other voters start an
// election immediately (see [Log.PeerLost]). A leader that only stops sending loses the leadership
// after the election timeout, or earlier (see "A silent leader"). Four files shorten elections:
// core_failover.go, core_ask.go, core_duplicate.go and detector.go.
//
// Each change of term or role discards all waiting batches and rounds. A batch that was passed to
// Propose for one term is never proposed in another term.
//
// # A silent leader
//
// Each voter limits the silence of its leader by the gaps that it has measured (detector.go). A gap
// is the time between two messages of a leader, or a heartbeat and the time for which the voter's
// own process did not run. A round trip causes no gap, because heartbeats follow each other. Lost
// and delayed messages cause gaps, and so does a leader without a processor.
//
//   - Bounds. The limit is SilenceTicks at least. At ElectionTicks, the timeouts of raft alone
//     decide. They are random, between one and two times ElectionTicks.
//   - A voter starts at the upper bound. The limit falls if all gaps of one to two minutes were
//     regular. It rises at once, by four ticks for each tick by which a gap exceeds a regular one.
//   - A gap of SilenceTicks or more has cost a living leader the lead, or would have done so. The
//     upper bound then holds for an hour, the next time for two hours, and so on up to a day. A gap
//     longer than every timeout of raft is an outage. It changes nothing.
//   - Silence is counted in ticks that the voter has taken. A late tick counts once. So a process
//     that gets no processor does not mistake its own pause for silence.
//
// Another replica can only send its messages late, or not at all, so it can move the limit only
// within the bounds. The limit is not random. A voter that reaches it supports the candidate that
// has asked it before, and of two candidates one yields.
//
// No guarantee depends on the limit. An election that was not needed costs the time of a failover
// and no lock, because a leader confirms nothing without a majority.
//
// # Changes of the configuration
//
// Each change is one entry of the log, and there is one change at a time. A new replica is added as
// a learner, with a context: bytes that describe the replica to all members. A change of several
// replicas goes through a joint configuration, in which a majority of the old voters and a majority
// of the new voters must agree. The leader then leaves the joint configuration.
//
//	            Change(Add)               Change(Promote, Demote, Remove): more than one
//	(none) ────────────────▶ learner ──────────────▶ joint ──────────────▶ voters, learners, gone
//	                              │                        AutoLeave, or the next leader
//	                              └─────────────────────────────────────▶
//	                                Change of one alone
//
// While a change is in the log and not applied, no batch is proposed. Callers then wait for one or
// two round trips and one or two Saves.
//
// A removed replica keeps running, because replicas that have not applied the removal may still
// need its vote. A removed leader steps down. The caller that requested the removal decides when to
// stop the replica.
//
// # Guarantees
//
//   - Every replica applies the same entries in the same order. It applies an entry only after the
//     entry is durable on this replica and on a majority.
//   - A vote or an acknowledgement is sent only after the Save that stores it, and all earlier
//     Saves, have returned.
//   - A batch is applied at most once, and only in an entry of the term that Propose named. The
//     batches of one term are applied in the order of the calls of Propose, without gaps.
//   - Confirmed is never called before Leads, not even in a group of one voter.
//   - A snapshot that is sent is never older than the last applied change of the configuration.
//   - The calls of Configured and Apply are in the order of the log. On all replicas the same index
//     has the same configuration. After a restart a replica has a configuration at least as new as
//     the last one that it passed to Configured (core_apply.go).
//   - From a change of the configuration until the leader has applied the change and has stored a
//     later entry, no replica has entries that the leader's disk does not have (core_departure.go).
//   - A replica that has lost its vote by a change of the configuration never has a longer log than
//     a majority of the remaining voters (core_departure.go).
//   - No message, and no error or panic of a store, an Applier or raft, ends the process.
//
// # Concurrency
//
// The methods of Log are safe for concurrent use. Each Log has three goroutines. Only the owner
// uses the Core and calls the Applier. The appender calls Save. The snapshotter calls
// Capture.AppendTo and Prepare. All three end after Close or when the log retires. No lock is held
// during a wait or a call of the Applier or the Store.
//
// # Failure
//
// A replica that cannot continue retires: it stops permanently and reports the cause to
// [Applier.Retired] and in its Status. The causes are [ErrStorage], [ErrPanic], [ErrWentBack],
// [ErrBroken] and [ErrHung].
//
// A replica that has lost its data must not start again under the same ID, because then two
// replicas can lead in one term (TestLostVote shows it). Found and Join refuse a store that already
// holds a log. A directory of package storage refuses an ID whose log has ended in that directory.
// The caller must ensure that no other directory or process uses the ID.
//
// # Limits
//
//   - Batches that wait to be proposed: 64 MiB by default. An entry holds several batches of up to
//     1 MiB together, or a single larger batch. By default at most 2 entries are proposed and not
//     yet applied.
//   - The inbox for messages: 4096 messages and 64 MiB. Further messages are dropped and counted.
//   - Memory holds the last snapshot, the entries after it, and up to 4096 entries or 4 MiB of
//     entries before it. While a snapshot is taken, memory also holds the Applier's copy and, for a
//     short time, two encoded snapshots.
//   - A replica blocks while it restores a snapshot. If that takes longer than an election timeout,
//     a leader that needs this replica for its majority steps down.
//   - A configuration has at most 1024 members, each with a context of at most 1 KiB.
//
// Raft's messages do not name their group. So the caller of Step must first check that the sender
// belongs to the group and that the From of the message is the ID of the sender. The caller of
// Change must first check that a majority of the new voters is available and that the ID of an
// added replica has never been used.
//
// # Refused alternatives
//
//   - raft.Node instead of RawNode: a panic on the goroutine of raft.Node cannot be recovered, and
//     each message passes through channels between goroutines.
//   - Acknowledgements sent by the appender itself: that would save one switch of goroutines for
//     each Save, but two goroutines would have to keep the order of messages.
//   - Contexts of the members in the Applier's state: a replica that begins with a snapshot would
//     have to decode the state before it can reach any other replica.
//   - Reads under the leader's lease (ReadOnlyLeaseBased), which would save the round trip to a
//     majority: the voters could follow no leader before its lease has ended. They follow a leader
//     whose streams have ended at once, and a silent one after SilenceTicks. Raft ignores
//     ForgetLeader under such a lease. A voter that restarts forgets what it has promised. So a
//     lease would cost each failover its length, and a guarantee would depend on clocks.
//   - A fixed window for batching: an idle Go process has no timer below a millisecond.
//   - A snapshot taken in one step on the owner's goroutine: a million locks are 100 MB, and all
//     voters would block at about the same time.
package raftlog
