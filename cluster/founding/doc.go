// Package founding decides how a group is founded exactly once: which instance proposes a charter,
// which instances accept it, when the group is born, and when an instance gives up a lost group. It
// also decides which replica of the group's log an instance has. [Core] is a pure state machine,
// one for each instance. Package cluster is its shell.
//
// An instance goes through one incarnation after another. The code calls an incarnation a life.
// Within a life it moves only forward:
//
//	             every listed instance is bound                 Born applied here,
//	             to this charter (AllBound): its     ┌───────┐  or told by a member
//	  proposes   leader may commit Born       ┌─────▶│ Bound │──────────┐
//	  a charter, or accepts one (rules 2, 3)  │      └───────┘          │
//	  ┌─────────┐                             │          │              ▼
//	─▶│ Newborn │─────────────────────────────┘          │         ┌────────┐
//	  └─────────┘─────────────────────────────────────────────────▶│ Member │
//	       ▲      reaches a member of a group with a leader        └────────┘
//	       │                                             │              │
//	       └───────────── restart in place: ─────────────┴──────────────┘
//	                      a new life, a new ID
//	      from Bound:  any refusal, or no Born for 10 s plus a random time (rule 5*)
//	      from Member: no leader for longer than the largest TTL, no answer names one, and
//	                   all instances that a new group needs answer, and the group is dead (rule 6*)
//	      * with a directory: from Bound the time counts while all instances are in reach;
//	        from Member only if an operator has called Recover, here, or elsewhere and this
//	        instance meets the group that was founded in its place
//
// A bound instance or a member may have a replica of the group's log. Each replica has a raft ID
// that is used once:
//
//	          the charter gives one (BoundTo)        ┌───────────┐  Retired: it stopped by itself
//	 ┌──────────────────────────────────────────────▶│  named by ├──────────────────────────────┐
//	 │                                               │  a config │  a newer configuration does  │
//	─┤                  a configuration names it     │  (votes,  ├──── not name it (Removed) ──▶│
//	 │                 ┌────────────────────────────▶│  learns)  │                              ▼
//	 │ Prepare    ┌────┴─────┐                       └───────────┘  Prepare of another ID  ┌────────┐
//	 └───────────▶│ prepared ├─────────────────────────────────────(Removed, Prepared)────▶│  over  │
//	 (Prepared)   └──────────┘   Retired                                                   └───┬────┘
//	 ▲                                                        Prepare of a new ID              │
//	 └─────────────────────────────────────────────────────────────────────────────────────────┘
//
// # The rules
//
// The code cites these rules by number:
//
//   - Rule 2: the newborn with the lowest ID proposes the charter (propose.go).
//   - Rule 3: an instance accepts a charter only if the list is complete, settings and clocks
//     agree, and no answer shows another group or attempt. Required answers must not be missing
//     (accept.go, founders.go).
//   - Rule 4: accepting binds the instance to that charter and to no other.
//   - Rule 5: a bound instance gives the charter up if any listed instance refuses it, or if Born
//     does not arrive within 10 s plus a random time.
//   - Rule 6: a member in memory gives its group up only if the group is dead (dead.go).
//   - Rule 7: a member with a directory keeps its group until an operator gives it up.
//   - Rule 9: a replica that is added later starts empty, by Prepare (prepare.go, replica.go).
//   - Rule 14: Push tells a member of a configuration that another member has applied.
//   - Rule 15: the settings of a founded group change through its log.
//
// # Configurations and replicas
//
// The configuration with the higher number is the newer one. An instance learns it by applying it
// (Voters), or from an answer, a Push or a Prepare of an instance that it believes.
//
// A Prepare of another ID is refused while the newest known configuration names the present ID, or
// if a later leader has prepared this life. Repeating a Prepare changes nothing: the answer is
// Running, or Ended once that ID is over.
//
// A replica that was only prepared is in no configuration, so its absence there does not remove it.
// A removed replica runs until the host reports Retired, also across starts with a directory:
// voters that do not know yet that the new configuration is committed may need its vote. A replica
// that was added and removed unnoticed stays idle until the next Prepare.
//
// # Which addresses are asked
//
// With Replicas, at most 16, each instance asks "who are you?" at every address that Join names,
// that gossip knows, or that has asked it. With Founders, the number of questions that the fleet
// asks in a second is linear in its size, whatever the network loses (search.go):
//
//   - An instance that is no founder waits only for a member of a group that has a leader. It asks
//     the voters that it knows and three random addresses behind Join, every one to two seconds, or
//     up to four times less often while nothing answers. It is not asked back.
//   - A founder asks the founders that it has met about seven times a second. While a founder is
//     missing, it has up to four more questions under way, to addresses behind Join and to
//     addresses that others have named.
//   - An answer names up to 16 addresses at which the asked instance has met founders, and a
//     member's answer its voters. These are hints where to ask, so Join needs to name only one
//     instance of the fleet.
//   - A member with a leader asks one address behind Join and one voter every 30 to 60 s, to find a
//     second group or a newer configuration.
//
// # When a group in memory is given up
//
// A voter is alive if the same life has answered within four seconds that its replica runs. It is
// over if its replica can never vote again: its own life reports that the replica no longer runs or
// says goodbye, or another life answers at its address or, with Founders, under its name. A voter
// of unknown name is over once other lives answer to the names of all founders. Alive outranks
// over. A silent voter is neither.
//
// A group can elect if the voters that are not over form a majority in a configuration that counts:
// the newest known one, or one that a live voter has applied. A joint configuration needs a
// majority of each half. A group that cannot elect is dead.
//
// The newest known configuration may be hearsay: a leader told it and died before another replica
// applied it. Nothing can be elected by it unless one of its voters has applied it or may yet do
// so. It stops counting when, for thirty seconds without a break, each of its voters was over, or
// was running and reported another applied configuration. A silent link ends after 25 s, so by then
// all messages of the dead leader have arrived or are lost. Hearsay still counts while a voter is
// silent, has applied nothing, or runs a build that does not report what it has applied.
//
// A member gives up its group only if all of this holds:
//
//   - It has known no leader for longer than the largest TTL, and no answer names one.
//   - All instances that a new group needs have answered since then, and were alive at the same
//     time.
//   - The group is dead.
//
// A new group needs the Founders of this instance and of its group, together, also in the next
// life. So an instance that names only itself cannot found a group beside the one that it had
// joined. A life that is over stays over, so no timing of questions, dials and elections revives a
// dead group.
//
// With Replicas, replacements at new addresses look like instances beside voters that are cut off.
// So a voter is also over if it was silent for ten minutes while Replicas instances answered. Only
// this is decided by time: a majority that is cut off for longer loses its group.
//
// When another group has a leader, an instance without a replica leaves its group if no majority of
// its voters answers. An instance with a replica leaves only if its group is dead.
//
// # Whose word counts
//
// The transport proves which instance is at the other end of a connection, and nothing else. Every
// holder of the secret can run an instance and can lie. Therefore (believe.go):
//
//   - An instance is believed about its own phase and settings and, for a voter with a directory,
//     its address. Its ID comes from the connection and never from the message.
//   - A configuration is believed from a voter of the newest known configuration. It is also
//     believed from the leader to which this instance is attached (Guide), because such a voter has
//     named that leader. Numbers are bounded, so that no lie can make every true configuration look
//     old. From any other instance it is a hint: at most it makes this instance ask the voters that
//     it knows (Inquire).
//   - That a group is born is believed from a voter, the leader, or an instance on the charter's
//     list.
//   - That this directory is a copy, or was restored from an older one, is believed from voters,
//     from instances on the charter's list, and from a process that has proved the same ID.
//   - That operators gave up the group of this directory is believed from an instance of the group
//     that replaced it. That instance must be at an address that Join names, and the largest TTL
//     must have passed without an answer from any known voter.
//   - A newborn knows no voter. It believes every instance that the transport admits.
//
// All voters may have been replaced while this instance was cut off. If no known voter has answered
// for the largest TTL, a hint of a newer configuration ends a life in memory; the locks are lost by
// then. An instance with a directory keeps its group, which may need its vote. If all voters that
// it knows are gone for good, an operator has to empty its directory.
//
// # Guarantees
//
// With Founders, or with Replicas equal to the number of running instances, two groups that could
// both have a leader are never born. Born is proposed only when every listed life is bound to the
// charter, and a life is bound to at most one charter. A complete list has every founder, or every
// instance, on it. A life that is over never votes again. So when the second group is born, no
// voter of the first is left.
//
// With Founders this rests on the answers of the founders alone (founders.go). Only founders vote,
// and one process runs under each founder's name. If every founder has answered within two seconds
// that it is newborn or bound to this very charter, no voter of an earlier group of theirs is left.
// In detail:
//
//   - A founder whose directory holds a group is a member after each start, not a newborn. So such
//     a group blocks founding until a founder loses its directory or an operator gives the group up
//     there.
//   - Founders that gave a group up are newborn. Another instance that keeps that group in its
//     directory has no vote. It blocks founding if it answers behind Join; otherwise it leaves the
//     old group when it meets the new one.
//   - If the list of founders is renamed, the voters of an earlier group may be founders of the
//     earlier list only. So a founder also asks other addresses behind Join, all of them or 16 at
//     random. It founds nothing while an instance there belongs to a group that has a leader or
//     that was founded by other founders or by Replicas, or is bound to another charter. That is no
//     proof. Two groups can have leaders if the lists have no common majority while the earlier
//     group lives in memory and none of its members can be reached. Rename through a group that has
//     a leader (rule 15), or stop the earlier instances first.
//   - A single founder has no other founder to ask, so it founds nothing while an address behind
//     Join is silent.
//   - If two processes use one name and both answer, nothing is founded. If one of them cannot be
//     reached, it may vote in an earlier group. A majority of such processes would be two groups.
//
// A later group has a later founding time if the clocks on its list agree, within half the grace,
// with those on the earlier list, and the earlier group has lived long enough to grant anything.
//
// As long as one voter answers a member, no instance without a vote can change the member's view of
// its group, end its replica or use up its raft ID.
//
// Once all instances can be reached, none stays stuck: a failed founding ends by rule 5, a group
// without a majority by rule 6.
//
// A raft ID names one log. A replica begins empty under an ID once, in one life of one instance,
// and never resumes after it has retired.
//
// With a directory (Config.Durable), a crash cannot take back what was sent. A group whose
// directories are intact is never given up and never doubled, however often and wherever its
// instances restart.
//
// # With a directory
//
// The core does no I/O. State returns what must be stored, and Revision counts its changes. If
// Revision has changed after an Ask or a Tick, the host stores State atomically before it sends the
// answer, carries out the events and puts the questions. If storing fails, it drops the answer;
// Unsaved returns what may still be done. So no other instance observes anything that is not
// durable: the accepted charter with its raft ID, Born, joining a running group, a replica
// prepared, removed or retired, and the restart in place, which removes charter and raft ID.
//
// A start with a stored charter begins as Bound or Member with the stored ID. It first settles
// (Settling): it asks every address that it knows until all have answered or refused, for at most a
// second and a half. A process with its ID at another address, or word of a newer start, shows that
// its directory is a copy or was restored from one. That bars it forever (Barred), since a raft ID
// with an older log would take back its votes. Resuming instances do not count for others until
// they take part, so a copy that is turned away leaves no trace.
//
// A newborn that starts again takes a new ID. Its refusals were not stored, so under the old ID it
// could accept a charter that it had refused.
//
// The time of rule 5 counts only while every instance that the settings ask for is in reach.
// Otherwise one instance could learn Born and keep the group while the others restart one by one
// and give up: a group without a majority though no directory is lost. The condition costs nothing,
// because without that instance no other group could be founded either.
//
// Rule 7 holds wherever an instance that keeps a directory's group is met, not only behind Join.
//
// # Recovery
//
// If a directory's group has lost its majority for good, an operator gives it up with Recover on
// each instance of it that is left. Recover is refused while an instance in reach knows a leader.
// The instance is then newborn, its directory records the group that was given up, and the next
// charter names it (Supersedes).
//
// A member of such a group leaves it on its own when it meets the new group and the conditions of
// "Whose word counts" hold. Until then it blocks founding and is named, if it is a founder, or has
// a directory and answers behind Join.
//
// The founding time is above every clock and every token that an instance on the list has seen
// (Floor). If that is further ahead of a clock than rule 3 allows, nothing is founded, and Waiting
// gives the reason. If the old majority still runs out of the operator's reach, Recover creates a
// second group.
//
// # Concurrency
//
// A Core is not safe for concurrent use; one goroutine owns it. Inputs only record. Tick decides,
// with one exception: Ask answers at once, and the answer binds the instance. Times are durations
// since any fixed origin. The core reads no clock and draws no random number.
//
// # Failure
//
// Silence is never an answer. With Replicas, founding is blocked while an address that Join names
// is silent; with several Founders, while a founder is; with one founder, while any address behind
// Join is. A name in Join that cannot be resolved always blocks founding. Waiting names what is
// missing, and what to do. An answer proves something for two seconds from the asking, and only
// about the life that gave it. Undecodable bytes count as silence: they may come from a newer
// version.
//
// # Limits
//
// A copied directory is detected when the two processes meet; until then both take part, and then
// the older start must leave. The core remembers starts of 1,024 instances, and those of voters
// durably, with the address book. Nothing can detect that all directories are restored to an
// earlier time together.
//
// The core remembers 128 raft IDs of a life that are over. For earlier ones it keeps only a
// configuration number, and refuses a Prepare of another ID that is not newer, because it may name
// a used ID. A configuration of more than 16 replicas is ignored, since no message carries it. An
// instance remembers 16 groups that were given up; a charter names 256.
//
// A list has at most 1,024 instances, a group 7 voters, a message 1 MiB. With Replicas each of at
// most 16 instances asks every other about 7 times a second until the group is born. With three
// founders, 256 instances start three to six questions a second each at most. Hints of 64 addresses
// are kept for a minute. Replicas below the number of running instances is not safe and cannot be
// made so: during a partition each side may reach that number.
//
// # Decisions beyond the rules
//
// Only a leader of its own group is a reason for a member to stay. Otherwise a member whose group
// has lost all its voters could never join the group founded since. A leader of another group is a
// reason to leave, because its founding proves that no voter of the old group is left. Answers to
// questions asked before the largest TTL was over do not count: they may describe the time before.
//
// "Are you bound to this charter?" and "Is it born?" are part of "who are you?". A life never
// leaves its charter, so the answer is the same, and one message fewer can be lost, repeated or
// answered by the wrong life.
//
// A proposer waits until every instance that it would list reports that nothing keeps it from
// accepting. This only avoids charters that rule 3 would refuse, and lets each instance name what
// the founding waits for.
//
// Rule 6 counts two instances as different only if they were met at the same time. Otherwise one
// that restarted at another address would count twice for a few seconds, and a living group would
// be given up.
//
// # Refused alternatives
//
// Prepare remembered by the leader alone, or in the log: the instance itself must never begin twice
// under one ID, so it remembers, where its own State is.
//
// Two-phase commit, where an instance that accepted is in doubt until it learns the outcome: one
// crash leaves the others in doubt forever. Here the log of the tentative group decides, and an
// instance in doubt begins anew, which is as safe as being killed and started again.
package founding
