// Package raftlog is one replica of one replicated log: commands go in as bytes on the leader, and
// come out on every replica in the same order.
//
// What it is: a loop around raft's RawNode (go.etcd.io/raft/v3) that decides what is stored, sent
// and applied, and in which order. [Core] is that loop without goroutine, clock, disk or network;
// [Log] is its shell. The state machine is an [Applier], the disk a [Store]; the network is two
// functions. The log does not know what it carries. [Found] and [Join] write how a log begins;
// [Start] runs it. There are two stores: [MemoryStore], and the one in a directory that package
// storage keeps.
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
// A turn takes all that has arrived, lets the Core work until it wants nothing more, and sends
// everything at once. What a turn finds together travels together: all batches that wait become one
// entry (group commit), all rounds one question to the others, all appends one Save. A store that
// waits for nothing (Volatile) is written in the middle of the turn, and there is no appender. A
// commit makes no message of its own: followers hear of it with the next append, at the latest
// after a tick. Nor do batches of which the Applier's side says that nobody waits for them
// ([Config].Patient) make an entry of their own: they ride with the next, or go alone after 2 to 4
// ms.
//
// # Snapshots
//
// Nothing waits for a snapshot: neither what is applied while it is taken nor what is appended
// while it is written. It does take processor time and the disk, which others want, too.
//
//	owner    Snapshot, Step ... Step              the beginning; one step at the end of each turn, with all other work in between
//	aside                       AppendTo, Prepare the bytes in one piece, which others can be sent from now on; then the store, beside the Saves
//	appender                              Save    a few bytes that name it; then what it replaces goes
//
// It is of the state at its beginning, and filed under the index and the configuration of then;
// what is applied meanwhile stays in the log behind it. One at a time, from the beginning until it
// is named. Another replica's snapshot, which is always newer, ends it. That one is installed in
// line with everything else: the owner stands still for its Restore, and the time that has passed
// meanwhile counts only after the messages that wait.
//
// # Roles
//
//	            election timeout, Campaign            a majority votes, own vote durable
//	follower ───────────────────────────▶ candidate ─────────────────────────────────────▶ leading, silent
//	   ▲ ▲                                    │                                                  │ own first entry applied: Leads
//	   │ └────────── another leads ───────────┘                                                  ▼
//	   └──────── a higher term, no majority heard for an election timeout, Transfer ──────── leading
//
// A leader whose streams have ended, or that says itself that it has retired, is not waited for
// ([Log.Gone]): its voters forget it at once and stand for election. Silence is handled by the
// election timeout. A candidate that waits for votes asks again every four ticks, and gives way
// once in a term to one with a lower ID that asks at the same time (core_ask.go). What an election
// waits for, and what two replicas send each other behind a gap in their heartbeats, may travel a
// second way as well, which loses other packets (core_duplicate.go).
//
// On each change of term or role all batches and rounds that wait are thrown away: what was decided
// in one term never happens in another.
//
// # Changes of the configuration
//
// One at a time, each an entry of the log. Who is to come is added as a learner; its entry says who
// it is, in words that are nothing to the log. Every replica knows the words of everybody in the
// present configuration, by the entries, or by the envelope around each snapshot, and tells them to
// its Applier. Everything else is one change: several at once go through a joint configuration, in
// which both majorities must agree, and which whoever leads then leaves.
//
//	            Change(Add)               Change(Promote, Demote, Remove): more than one
//	(nobody) ──────────────▶ learner ──────────────▶ joint ──────────────▶ voters, learners, gone
//	                              │                        AutoLeave, or the next leader
//	                              └─────────────────────────────────────▶
//	                                Change of one alone
//
// A change is taken by the leader that Leads was called for, in its term, while Survey says that
// nothing is pending. What cannot be is forgotten: whoever wants it looks again. Raft silently puts
// an empty entry in the place of a change that it refuses; the Core counts its own empty entries,
// so that it knows.
//
// Once a configuration is applied the leader proposes an empty entry, unless something else follows
// it. Whoever acknowledges that knows the configuration to be committed, also after a crash
// (Progress.Settled): having the entry alone is not knowing.
//
// While a change is under way no batch is put behind it, so callers wait for one or two round
// trips.
//
// A replica that is not in the configuration any more goes on; a leader steps down. Its vote may
// still be needed by those who do not know yet, so whoever asked for its removal says when it
// stops.
//
// # Guarantees
//
//   - Every replica applies the same entries in the same order, each after it is durable there and
//     on a majority.
//   - A vote or an acknowledgement leaves only after the Save that holds it and everything before
//     it has returned.
//   - A batch is applied at most once, and only in an entry of the term that Propose named. Batches
//     proposed while this replica leads in a term are applied in the order of their Propose, and if
//     one is, so are all before it.
//   - Confirmed(term, round): after Confirm was called a majority has confirmed that this replica
//     led, and the state holds everything that was committed by then. Not before Leads, also with
//     one voter.
//   - A snapshot that is sent is never older than the last applied change of the configuration.
//   - Configured is called in order with Apply, with equal configurations for equal indexes on all
//     replicas.
//   - From a change of the configuration until the leader durably knows it to be committed, nobody
//     has more of the log than the leader has on its disk. Otherwise a leader could restart with
//     less than somebody has who has lost its vote by then, and be elected by nobody.
//   - A replica that has lost its vote has no more of the log than a majority of those that keep
//     theirs. Otherwise, if the leader died, it would refuse its vote to those that do not know
//     that it has none (core_departure.go).
//   - The process is never ended, whatever a store, an Applier, raft or a message does.
//
// # Concurrency
//
// The methods of Log are safe for concurrent use. Each Log has an owner goroutine, which alone
// touches the Core and calls the Applier, for a store that is not Volatile an appender goroutine,
// which alone calls Save, and the aside goroutine, which puts a snapshot together and has it
// prepared. All are started by Start and end with Close or when the log retires. No lock is held
// while anything is called or waited for.
//
// The owner is woken by what arrives and at each tick. A leader whose group has no other replica
// has no ticks while nothing is under way: it has no followers to hear from and no quorum to lose
// (core_rest.go).
//
// # Failure
//
// A replica that cannot go on retires: it stops for good and says why, once, by [Applier.Retired]
// and in its Status.
//
//   - [ErrStorage]: Save or Prepare failed or panicked. Never tried again: after a failed sync
//     nobody knows what the disk holds.
//   - [ErrPanic]: raft panicked, as it does when messages or data contradict each other, for
//     example after a log has lost its end.
//   - [ErrBroken]: the Applier failed or panicked. The other replicas will fail alike: more than
//     this voter is broken.
//   - [ErrHung]: this replica led, its oldest Save or its apply stood still for an election
//     timeout, it offered its lead to the best other voter, and still led after another election
//     timeout. Raft alone would let it lead for ever, committing by its followers and answering
//     nobody. Or the store has not made a snapshot durable in a minute and a second for each MiB:
//     the log, which is kept in memory until then, would grow for ever. A lone voter waits instead.
//
// A replica that has lost its data must not come back under its ID (TestLostVote shows two leaders
// of one term). Found and Join refuse a store in use; a directory of package storage refuses an ID
// whose log has ended there; that an ID is not used in another directory or process is up to the
// caller.
//
// # Limits
//
// What waits to be proposed: 64 MiB by default; an entry holds batches up to 1 MiB together, or one
// that is larger; 2 entries under way. The inbox for messages: 4096 and 64 MiB, then they are
// dropped and counted. A snapshot is begun after as many bytes of entries as the last one was long,
// at least 4 MiB, and up to half as much more, so that replicas seldom take theirs together. In
// memory stay: the last snapshot, the entries since its beginning, and up to 4096 entries or 4 MiB
// before it; while one is taken, what the Applier needs for that, and for a moment its bytes a
// second time. A restart begins at the snapshot. Whoever is sent one stands still while it is
// restored: beyond an election timeout a leader that needs it for its majority steps down.
//
// A Log does not check which group a message comes from, since raft's messages do not say: whoever
// calls Step has checked that its sender belongs to the group and is whom From names. Nor does it
// judge a change: whether a majority of those who will vote is there, and whether an ID is new, is
// up to the caller. A configuration has at most 1024 members, of each of whom 1 KiB is known. A
// Survey is as old as the last tick.
//
// # Refused alternative
//
// raft.Node instead of RawNode: its goroutine cannot be recovered, and its channels cost a
// hand-over for each message. Acknowledgements sent by the appender past the owner save one
// hand-over for each Save, and would put ordering rules on two goroutines; here the Core keeps them
// all. Who is who in the state of the Applier, where commands would tell it: a replica that begins
// with a snapshot would have to understand it before it can reach anybody, and the two would have
// to be kept equal. A fixed window for batching: a timer below a millisecond does not exist in an
// idle Go process. A snapshot all at once, on the owner and within a Save: a million locks are 100
// MB, all voters take theirs at about the same time, since they have the same log, and a majority
// that stands still grants nothing.
package raftlog
