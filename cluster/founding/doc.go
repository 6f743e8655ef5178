// Package founding decides how a group is founded exactly once: which instance proposes a charter,
// which instances accept it, when the group is founded, and when an instance gives up a lost group.
// It also decides which replica of the group's log an instance has. [Core] is a pure state machine,
// one for each instance. Package cluster is its shell.
//
// An instance has one incarnation after another, which the code calls lives. Within an incarnation
// the phase only advances:
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
// The code cites these rules by number:
//
//   - Rule 2: the newborn with the lowest ID proposes the charter (propose.go).
//   - Rule 3: an instance accepts a charter only if the list is complete, settings and clocks
//     agree, and no answer shows another group or charter. Required answers must not be missing
//     (accept.go, founders.go).
//   - Rule 4: accepting binds the instance to that charter and to no other.
//   - Rule 5: a bound instance gives the charter up if any listed instance refuses the charter, or
//     if Born does not arrive within 10 s plus a random time.
//   - Rule 6: a member in memory gives its group up only if the group is dead (dead.go).
//   - Rule 7: a member with a directory keeps its group until an operator gives it up.
//   - Rule 9: a replica that is added later starts empty, by Prepare (prepare.go, replica.go).
//   - Rule 14: a member that has applied a configuration sends it to another member by Push.
//   - Rule 15: the settings of a founded group change through its log.
//
// # Configurations and replicas
//
// The configuration with the higher number is the newer one. An instance learns a configuration by
// applying it (Voters), or from an answer, a Push or a Prepare of an instance whose reports it
// believes.
//
// An instance refuses a Prepare of another raft ID while the newest known configuration names its
// present ID. It also refuses a Prepare if a later leader has prepared this incarnation. Repeating
// a Prepare changes nothing: the answer is Running, or Ended if that ID was used before.
//
// A replica that was only prepared is in no configuration, so a configuration cannot remove it. A
// removed replica runs until the host reports Retired, even across starts with a directory: voters
// that do not know yet that the new configuration is committed may need its vote. A replica that
// was added and removed while its instance was out of reach stays idle until the next Prepare.
//
// # Which addresses are asked
//
// With Replicas, which is at most 16, each instance asks "who are you?" at every address to which
// Join resolves (a Join address), that gossip knows, or from which another instance has asked. With
// Founders, the number of questions that the fleet asks in a second is linear in its size, even if
// all messages are lost (search.go):
//
//   - An instance that is no founder needs only one member of a group that has a leader. Every one
//     to two seconds it asks the voters that it knows and three random Join addresses. While
//     nothing answers, it asks up to four times less often. Other instances do not ask it in
//     return.
//   - A founder asks the founders that it has met about seven times a second. While a founder is
//     missing, it also asks Join addresses and addresses that others have named, at most four at a
//     time.
//   - An answer names up to 16 addresses at which the asked instance has met founders. An answer of
//     a member also names its voters. These addresses only suggest where to ask. Therefore Join
//     needs to name only one instance of the fleet.
//   - A member with a leader asks one Join address and one voter every 30 to 60 s, to find a second
//     group or a newer configuration.
//
// # When a group in memory is given up
//
// A voter is alive if its incarnation has answered within the last four seconds that its replica
// runs. A voter has ended ("over" in the code) if its replica can never vote again: its incarnation
// reports that the replica no longer runs, or announces its exit, or another incarnation answers at
// its address or, with Founders, under its name. A voter of unknown name has ended once other
// incarnations have answered under the names of all founders. A voter that is alive never counts as
// ended. A silent voter is neither alive nor ended.
//
// A group can elect a leader if the voters that have not ended form a majority in a configuration
// that counts. Such configurations are the newest known one and each one that a live voter has
// applied. A joint configuration needs a majority of each half. A group that cannot elect a leader
// is dead.
//
// The newest known configuration may be hearsay: a leader sent it and died before another replica
// applied it. No leader can be elected by such a configuration unless one of its voters has applied
// it or may still do so. Such a configuration stops counting when, for thirty seconds without a
// break, each of its voters had ended, or was running and reported another applied configuration. A
// silent link ends after 25 s, so after this time all messages of the dead leader have arrived or
// are lost. Hearsay continues to count while a voter is silent, has applied nothing, or runs a
// build that does not report its applied configuration.
//
// A member gives up its group only if all of these conditions hold:
//
//   - It has known no leader for longer than the largest TTL, and no answer names a leader.
//   - All instances that a new group needs have answered since the TTL passed, and were alive
//     simultaneously.
//   - The group is dead.
//
// A new group needs the Founders of this instance together with those of its group, in the next
// incarnation too. So an instance that names only itself cannot found a group beside the group that
// it had joined. An incarnation that has ended never returns, so no timing of questions,
// connections and elections revives a dead group.
//
// With Replicas, replacements of the voters at new addresses cannot be distinguished from further
// instances that run beside voters that are cut off. So a voter has also ended if it was silent for
// ten minutes while Replicas instances answered. This is the only decision by time: a majority that
// is cut off for longer loses its group.
//
// When another group has a leader, an instance without a replica leaves its group if no majority of
// its voters answers. An instance with a replica leaves only if its group is dead.
//
// # Whose word counts
//
// The transport proves which instance sent a message, and nothing else. Every holder of the secret
// can run an instance and can lie. Therefore (believe.go):
//
//   - An instance is believed about its own phase and settings and, if it is a voter with a
//     directory, about its address. Its ID comes from the connection and never from the message.
//   - A configuration is believed if it comes from a voter of the newest known configuration. It is
//     also believed if it comes from the leader to which this instance is attached (Guide), because
//     a voter has named that leader. Configuration numbers are bounded, so that no lie can make
//     every true configuration look old. A configuration from any other instance is only a hint: at
//     most it makes this instance ask the voters that it knows (Inquire).
//   - A report that a group is founded is believed if it comes from a voter, from the leader, or
//     from an instance on the charter's list.
//   - A report that this directory is a copy, or was restored from an older copy, is believed if it
//     comes from a voter, from an instance on the charter's list, or from a process that has proved
//     the same ID.
//   - A report that operators gave up the group of this directory is believed if it comes from an
//     instance of the group that replaced it. That instance must be at a Join address, and the
//     largest TTL must have passed without an answer from any known voter.
//   - A newborn knows no voter, so it believes every instance that the transport admits.
//
// All voters may have been replaced while this instance was cut off. If no known voter has answered
// for the largest TTL, a hint of a newer configuration ends an incarnation in memory, whose locks
// are lost by that time. An instance with a directory keeps its group, which may need its vote. If
// all voters that the instance knows have ended for good, an operator has to empty its directory.
//
// # Guarantees
//
// With Founders, or with Replicas equal to the number of running instances, two groups that could
// both have a leader never exist. Born is proposed only when every listed incarnation is bound to
// the charter, and an incarnation is bound to at most one charter. A complete list has every
// founder, or every instance, on it. An incarnation that has ended never votes again. So when the
// second group is founded, no voter of the first one is left.
//
// With Founders this depends only on the answers of the founders (founders.go). Only founders vote,
// and one process runs under each founder's name. If every founder has answered within two seconds
// that it is newborn or bound to this charter, no voter of an earlier group of these founders is
// left. In detail:
//
//   - A founder whose directory holds a group is a member after each start, not a newborn. So such
//     a group blocks founding until the founder loses its directory or an operator gives the group
//     up on that founder.
//   - Founders that gave a group up are newborn. Another instance that keeps that group in its
//     directory has no vote. If that instance answers at a Join address, it blocks founding;
//     otherwise it leaves the old group when it meets the new one.
//   - If the list of founders is changed to other names, the voters of an earlier group may be
//     founders of the earlier list only. So a founder also asks other Join addresses, all of them
//     or 16 at random. It founds nothing while an instance at one of them is bound to another
//     charter, or belongs to a group that has a leader or that was founded by other founders or by
//     Replicas. This does not prove that the earlier group has ended. Two groups can have leaders
//     if the lists have no common majority, the earlier group lives in memory, and none of its
//     members can be reached. To change the names, use a group that has a leader (rule 15), or stop
//     the earlier instances first.
//   - A single founder has no other founder to ask, so it founds nothing while a Join address is
//     silent.
//   - If two processes use one name and both answer, nothing is founded. If one of them cannot be
//     reached, it may vote in an earlier group. A majority of such processes could form a second
//     group.
//
// A later group has a later founding time on two conditions: the clocks of its listed instances
// agree, within half the grace, with those of the earlier list, and the earlier group existed long
// enough to grant a lock.
//
// As long as one voter answers a member, no instance without a vote can change the configuration
// that the member knows, end its replica or use up its raft ID.
//
// Once all instances can reach each other, no instance waits forever: rule 5 ends a failed
// founding, and rule 6 ends a group without a majority.
//
// A raft ID names one log. Under one ID only one incarnation of one instance starts an empty
// replica, and only once. A retired replica never resumes.
//
// With a directory (Config.Durable), a crash cannot revoke what was sent. A group whose directories
// are intact is never given up, and no second group is founded beside it, however often and
// wherever its instances restart.
//
// # With a directory
//
// The core does no I/O. State returns what must be stored, and Revision counts its changes. If
// Revision has changed after an Ask or a Tick, the host stores State atomically before it sends the
// answer, carries out the events and asks the questions. If storing fails, the host drops the
// answer, and Unsaved returns the actions that are still allowed. So no other instance observes
// anything that is not durable: the accepted charter with its raft ID, Born, joining a running
// group, a replica prepared, removed or retired, and the restart in place, which removes charter
// and raft ID.
//
// An instance that starts with a stored charter has the phase Bound or Member and the stored ID. It
// first settles (Settling): it asks every address that it knows until all have answered or refused,
// for at most a second and a half. If a process with its ID answers at another address, or another
// instance reports a newer start, the directory is a copy or was restored from a copy. Such an
// instance is barred forever (Barred), because a raft ID with an older log would revoke its votes.
// Other instances do not count an instance that settles, so the refused copy of a directory has no
// effect on them.
//
// The time of rule 5 counts only while this instance reaches every instance that the settings ask
// for. Otherwise one instance could learn Born and keep the group while the others restart one by
// one and give the charter up. The group would have no majority although no directory is lost. The
// condition delays nothing, because no other group can be founded without the missing instance.
//
// An instance that keeps a group in its directory blocks founding (rule 7) at whatever address it
// is met, not only at Join addresses.
//
// # Recovery
//
// If a group with directories has lost its majority for good, an operator gives the group up by
// calling Recover on each remaining instance of the group. Recover is refused while an instance in
// reach knows a leader. After Recover the instance is newborn, its directory records the group that
// was given up, and the next charter names that group (Supersedes).
//
// A member that was out of reach leaves such a group by itself when it meets the new group under
// the conditions of "Whose word counts". Until then it blocks founding if it is a founder, or has a
// directory and answers at a Join address. In these cases Waiting names the member.
//
// The founding time is later than every clock and every token that an instance on the list has seen
// (Floor). If the founding time would be further ahead of a clock than rule 3 allows, no group is
// founded, and Waiting gives the reason. If the old majority is still running where the operator
// cannot reach it, Recover creates a second group.
//
// # Concurrency
//
// A Core is not safe for concurrent use; one goroutine owns it. Inputs are only recorded, and Tick
// makes all decisions, with one exception: the answer that Ask returns binds the instance
// immediately. Times are durations since any fixed origin. The core reads no clock and draws no
// random number.
//
// # Failure
//
// Silence never counts as an answer. With Replicas, a silent Join address blocks founding. With
// several Founders, a silent founder blocks founding. With one founder, any silent Join address
// blocks founding. A name in Join that cannot be resolved always blocks founding. Waiting names
// what is missing and what to do. An answer counts for two seconds after the question was sent, and
// only for the incarnation that gave it. Bytes that cannot be decoded count as silence, because
// they may come from a newer version.
//
// # Limits
//
// A copied directory is detected when the two processes meet. Both take part until then, and
// afterwards the older start must leave. The core remembers starts of 1,024 instances, and stores
// those of voters with their addresses. If all directories are restored to an earlier time
// together, nothing can detect it.
//
// The core remembers 128 used raft IDs of an incarnation. For earlier IDs it keeps only a
// configuration number. It refuses a Prepare that has this number or a lower one and an ID that it
// does not remember, because the ID may have been used. A configuration of more than 16 replicas is
// ignored, since no message can carry it. An instance remembers 16 groups that were given up, and a
// charter names at most 256.
//
// A list has at most 1,024 instances, a group has at most 7 voters, and a message has at most 1
// MiB. With Replicas each of at most 16 instances asks every other about 7 times a second until the
// group is founded. With three founders, each of 256 instances asks at most three to six questions
// a second. 64 hinted addresses are kept for a minute. Replicas below the number of running
// instances is not safe and cannot be made safe: during a partition each side may reach that
// number.
//
// # Decisions beyond the rules
//
// A member stays in its group if any instance reports a leader of that group. A leader of another
// group does not make it stay, because then a member whose group has lost all its voters could
// never join the next group. A leader of another group is a reason to leave, because the founding
// of that group proves that no voter of the old one is left. If a question was asked before the
// largest TTL had passed, its answer does not count, because the answer may describe an earlier
// state.
//
// Before proposing, an instance waits until every instance on the future list reports that nothing
// prevents it from accepting. So rule 3 refuses few charters, and each instance can report why
// founding waits.
//
// # Refused alternatives
//
// Two-phase commit, where an instance that has accepted waits until it learns the outcome. One
// crash leaves the others waiting forever. Here the log of the tentative group decides, and an
// instance that does not learn the outcome restarts in place, which is as safe as a kill and a new
// start.
package founding
