// Package raftlog is one replica of a replicated log. Commands are proposed as bytes on the leader
// and applied on every replica in the same order. The log does not interpret them.
//
// The package is a loop around raft's RawNode (go.etcd.io/raft/v3), which decides what is stored,
// sent and applied, and in which order. [Core] is the loop without goroutine, clock, disk or
// network; [Log] is its shell. The state machine is an [Applier], the disk a [Store], the network
// two functions. [Found] and [Join] write the beginning of a log; [Start] runs it. There are two
// stores: [MemoryStore], and the directory of package storage.
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
// messages together. All waiting batches become one entry (group commit), all waiting rounds become
// one question to the followers, and all waiting appends become one Save. A Volatile store is
// written within the turn, without an appender.
//
// A deferrable batch only makes requests wait, so no caller benefits if it is applied sooner
// ([Config].Deferrable). It is proposed together with the next entry, or by itself after 2 to 4 ms.
// With 3 callers that makes a hand-over of a lock 8 % faster in memory and 16 % faster with a
// directory, with 17 % and 32 % fewer allocations; with 64 callers 6 % and 11 % faster.
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
// A snapshot holds the state, index and configuration of its beginning; later entries stay in the
// log behind it. There is at most one at a time. A snapshot from another replica is always newer
// and ends it. The owner blocks during the Restore of such a snapshot, and then handles the
// messages that waited before it counts the elapsed time.
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
// If the streams from a leader end, or it reports that it has retired ([Log.PeerLost]), the voters
// start an election at once. A leader that only stops sending is replaced after the election
// timeout. Three files shorten elections: core_failover.go, core_ask.go and core_duplicate.go.
//
// Each change of term or role discards all waiting batches and rounds. A proposal that was made in
// one term never takes effect in another.
//
// # Changes of the configuration
//
// Each change is one entry of the log, one at a time. A new replica is added as a learner, with a
// context that describes it; every replica has the contexts of all members. A change of several
// replicas goes through a joint configuration, in which both majorities must agree and which the
// leader then leaves.
//
//	            Change(Add)               Change(Promote, Demote, Remove): more than one
//	(none) ────────────────▶ learner ──────────────▶ joint ──────────────▶ voters, learners, gone
//	                              │                        AutoLeave, or the next leader
//	                              └─────────────────────────────────────▶
//	                                Change of one alone
//
// Once a configuration is applied the leader proposes an empty entry, unless another follows
// anyway. A replica that acknowledges that entry knows that the configuration is committed, also
// after a crash (Progress.Settled). Having the configuration's own entry does not prove that.
//
// No batch is proposed behind a change until it is applied, so callers wait for one or two round
// trips, and for as many Saves: a change is applied after its commit index is durable.
//
// A replica that is removed keeps running; a leader steps down. Its vote may still be needed by
// replicas that have not applied the removal. The caller that asked for the removal must decide
// when to stop the replica.
//
// # Guarantees
//
//   - Every replica applies the same entries in the same order, each after it is durable there and
//     on a majority.
//   - A vote or an acknowledgement is sent only after the Save that holds it and everything before
//     it has returned.
//   - A batch is applied at most once, and only in an entry of the term that Propose named. Batches
//     of one lead are applied in the order of their Propose, and if one is, so are all before it.
//   - Confirmed(term, round): after Confirm was called a majority has confirmed that this replica
//     led, and the state holds everything that was committed by then. It is never called before
//     Leads, also with one voter.
//   - A snapshot that is sent is never older than the last applied change of the configuration.
//   - Configured is called in order with Apply, with equal configurations for equal indexes on all
//     replicas. A replica that restarts has a configuration at least as new as the last one that it
//     reported (core_apply.go).
//   - From a change of the configuration until the leader durably knows that it is committed, no
//     replica has more of the log than the leader's disk (core_append.go).
//   - A replica that has lost its vote has no more of the log than a majority of the remaining
//     voters (core_departure.go).
//   - The process is never ended, whatever a store, an Applier, raft or a message does.
//
// # Concurrency
//
// The methods of Log are safe for concurrent use. Each Log has an owner goroutine, which alone
// touches the Core and calls the Applier; an appender goroutine, which alone calls Save, unless the
// store is Volatile; and the snapshotter, which encodes a snapshot and calls Prepare. They end with
// Close or when the log retires. No lock is held during a call or a wait.
//
// # Failure
//
// A replica that cannot continue retires: it stops permanently and reports the cause, once by
// [Applier.Retired] and then in its Status. The causes are [ErrStorage], [ErrPanic], [ErrBroken]
// and [ErrHung].
//
// A replica that has lost its data must not come back under its ID (TestLostVote shows two leaders
// of one term). Found and Join refuse a store in use. A directory of package storage refuses an ID
// whose log has ended there. The caller must ensure that an ID is used in no other directory or
// process.
//
// # Limits
//
//   - Batches that wait to be proposed: 64 MiB by default. An entry holds batches up to 1 MiB
//     together, or one that is larger. At most 2 entries are under way.
//   - The inbox for messages: 4096 messages and 64 MiB. Messages beyond that are dropped and
//     counted.
//   - A snapshot begins after as many bytes of entries as the last one was long, at least 4 MiB,
//     and up to half as much more.
//   - Memory holds the last snapshot, the entries since its beginning, and up to 4096 entries or 4
//     MiB before it. While a snapshot is taken it also holds what the Applier needs for that, and
//     briefly the encoded bytes a second time.
//   - A restart begins at the snapshot. A replica that receives one blocks while it restores it. If
//     that takes longer than an election timeout, a leader that needs it for its majority steps
//     down.
//   - A configuration has at most 1024 members, each with a context of at most 1 KiB.
//
// Raft's messages do not name their group, so before Step the caller must check that the sender
// belongs to the group and is the one that From names. Before Change the caller must check that a
// majority of the new voters is available and that an ID is new.
//
// # Refused alternatives
//
//   - raft.Node instead of RawNode: its goroutine cannot be recovered, and each message costs a
//     hand-over through its channels.
//   - Acknowledgements sent by the appender, past the owner: they would save a hand-over for each
//     Save, but spread the ordering rules over two goroutines.
//   - Contexts of the members in the Applier's state: a replica that begins with a snapshot would
//     have to decode it before it can reach any other, and two copies would have to be kept equal.
//   - A fixed window for batching: an idle Go process has no timer below a millisecond.
//   - A snapshot all at once, on the owner and within a Save: a million locks are 100 MB, and all
//     voters would block at about the same time.
package raftlog
