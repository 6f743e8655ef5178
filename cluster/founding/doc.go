// Package founding decides how a group is founded exactly once: which instance proposes a charter,
// which instances accept the charter, and when an instance gives up a lost group. The package also
// decides which replica of the group's log an instance has. [Core] is a pure state machine. Each
// instance has one Core, and package cluster is its shell.
//
// An instance has one incarnation after another; the code calls an incarnation a life. Within an
// incarnation the phase only advances:
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
// A bound instance or a member may have a replica of the group's log. Each raft ID is used for one
// replica only:
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
//     agree, all required answers are there, and no answer shows another group or charter
//     (accept.go).
//   - Rule 4: an instance that has accepted a charter is bound to this charter and to no other.
//   - Rule 5: a bound instance gives the charter up if any listed instance refuses the charter,
//     or if Born does not arrive within 10 s plus a random time.
//   - Rule 6: a member without a directory gives its group up only if the group is dead (dead.go).
//   - Rule 7: a member with a directory keeps its group until an operator gives the group up.
//   - Rule 9: a replica that is added later starts empty, by Prepare (prepare.go, replica.go).
//   - Rule 14: a member that has applied a configuration sends it to another member by Push.
//   - Rule 15: the settings of a founded group change through its log.
//
// # The parts of a core
//
// Each part is a type in its own file. Only that file writes its fields: self (the instance),
// bond (its group), replica (its raft IDs), leading (the group's leader), attempt (the founding),
// fates (replicas that may have ended), acquaintances (starts and names of others), directory (what
// is stored besides) and contacts (which addresses are asked). Core passes the inputs to the parts.
//
// A decision that needs several parts is a method of a copy of them: sight, roll (rule 2), assent
// (rule 3), inquest (rule 6), recovery, respondent and outlook.
//
// # Configurations and replicas
//
// The configuration with the higher number is the newer one. An instance learns a configuration
// when its replica applies it (Voters), or from an answer, a Push or a Prepare of an instance that
// it believes.
//
// While the newest known configuration names the raft ID of an instance, the instance refuses a
// Prepare of another ID. It also refuses a Prepare whose term is lower than the term of its last
// Prepare. A repeated Prepare changes nothing: the answer is Running, or Ended if the ID was used
// before.
//
// A removed replica runs until the host reports Retired. Some voters may not know yet that the new
// configuration is committed, and may need the vote of the removed replica. With a directory, the
// replica also runs again after a restart. A replica that was only prepared is in no configuration,
// so a configuration cannot remove it. If it is added and removed while its instance is out of
// reach, it stays idle until the next Prepare.
//
// # Which addresses are asked
//
// With Replicas, each instance asks "who are you?" at all known addresses: those to which Join
// resolves (Join addresses), those from gossip, and those of instances that have asked this one.
// With Founders, the number of questions per second is linear in the size of the fleet, even if all
// messages are lost (contacts.go):
//
//   - An instance that is no founder needs only one member of a group that has a leader. Every
//     one to two seconds it asks the known voters and three random Join addresses. While no
//     address answers, it asks up to four times less often. Other instances do not ask it in
//     return.
//   - About seven times a second, a founder asks the founders that it has met. While a founder is
//     missing, it also asks Join addresses and addresses from answers, at most four at a time.
//   - An answer names up to 16 addresses of founders. The answer of a member also names the voters
//     of its group. So Join needs to name only one instance of the fleet. The addresses only
//     suggest where to ask.
//   - A member with a leader asks one Join address and one voter every 30 to 60 s, to find a
//     second group or a newer configuration.
//
// # When a group without directories is given up
//
// A voter is alive if an answer of its incarnation in the last four seconds says that its replica
// runs. A voter has ended ("over" in the code) if its replica can never vote again: its incarnation
// reports that the replica no longer runs, its incarnation announces its exit, or another
// incarnation answers at its address or, with Founders, under its name. A voter of unknown name has
// ended once other incarnations have answered under the names of all founders. A live voter never
// counts as ended. A silent voter is neither alive nor ended.
//
// A group can elect a leader if the voters that have not ended form a majority in a configuration
// that counts. The newest known configuration counts, and so does each configuration that a live
// voter has applied. A joint configuration needs a majority of each half. A group that cannot elect
// a leader is dead.
//
// A leader may send a new configuration and die before any replica applies it. A configuration that
// none of its voters applies can elect no leader. So the newest known configuration is ignored
// after thirty seconds in which none of its voters could have applied it: each voter either has
// ended, or runs and reports another applied configuration. By then all messages of the dead leader
// have arrived or are lost, because a silent link ends after 25 s.
//
// A member gives up its group only if all of these conditions hold:
//
//   - It has known no leader for longer than the largest TTL, and no answer names a leader.
//   - All instances that a new group needs have answered since the TTL passed, and were alive
//     simultaneously.
//   - The group is dead.
//
// A new group needs the Founders of this instance and the Founders of its group. The next
// incarnation of this instance still needs both. So an instance whose Founders name only itself
// cannot found a group beside the group that it had joined.
//
// With Replicas, an instance cannot tell whether an instance at a new address replaces a voter or
// is an additional instance. So a voter has also ended if it was silent for ten minutes while
// Replicas instances answered. A majority that is cut off for longer loses its group.
//
// When another group has a leader, an instance without a replica leaves its group if no majority of
// the group's voters answers. An instance with a replica leaves only if its group is dead.
//
// # Which reports are believed
//
// The transport proves which instance sent a message, and nothing else. Every process that has the
// secret can send false reports. Therefore (sight.go):
//
//   - An instance is believed about its own phase and settings. A voter with a directory is also
//     believed about its address.
//   - A configuration is believed if it comes from a voter of the newest known configuration, or
//     from the leader to which this instance is attached (Guide). From any other instance it is
//     only a hint: at most, it makes this instance ask the known voters (Inquire).
//   - A report that a group is founded is believed if it comes from a voter, from the leader, or
//     from an instance on the charter's list.
//   - A report that this directory is a copy, or was restored from an older copy, is believed if
//     it comes from a voter, from an instance on the charter's list, or from a process that has
//     proved the same ID.
//   - A report that operators gave up the group of this directory is believed if it comes from an
//     instance of the group that replaced it. That instance must be at a Join address, and no
//     known voter may have answered for the largest TTL.
//   - A newborn knows no voter, so it believes every instance that the transport admits.
//
// All voters may have been replaced while this instance was cut off. If no known voter has answered
// for the largest TTL, a hint of a newer configuration ends the incarnation of an instance without
// a directory. The locks of the instance are lost by that time. An instance with a directory keeps
// its group, because the group may need its vote. If all known voters have ended for good, an
// operator has to empty that directory.
//
// # Guarantees
//
// With Founders, or with Replicas equal to the number of running instances, there are never two
// groups that could both have a leader. Born is proposed only when every listed incarnation is
// bound to the charter, and an incarnation is bound to at most one charter. A complete list names
// every founder, or every instance. An incarnation that has ended never votes again. So when a
// second group is founded, no voter of the first group is left.
//
// With Founders this depends only on the answers of the founders (accept.go). Only founders vote,
// and one process runs under each founder's name. In detail:
//
//   - A founder whose directory holds a group blocks founding until it loses its directory or an
//     operator gives the group up on that founder.
//   - Another instance that keeps such a group in its directory has no vote. It blocks founding
//     if it answers at a Join address. Otherwise it leaves the old group when it meets the new
//     group.
//   - If the names of the founders are changed, a voter of an earlier group may no longer be a
//     founder. So a founder also asks other Join addresses, all of them or 16 at random. It
//     founds nothing while an instance there is bound to another charter. It also founds nothing
//     while an instance there belongs to a group that has a leader, that has other founders, or
//     that was founded with Replicas. Two groups can still have leaders if the lists have no
//     common majority, the earlier group has no directories, and none of its members can be
//     reached. To change the names, use a group that has a leader (rule 15), or stop the earlier
//     instances first.
//   - A single founder founds nothing while a Join address is silent.
//   - If two processes use one name and both answer, nothing is founded. If one of them cannot be
//     reached, it may vote in an earlier group. A majority of such processes could form a second
//     group.
//
// A later group has a later founding time if the clocks on its list agree with the clocks on the
// earlier list within half the grace, and if the earlier group existed long enough to grant a lock.
//
// As long as one voter answers a member, no instance without a vote can change the known
// configuration or end the member's replica.
//
// Once all instances can reach each other, no instance waits forever: rule 5 ends a failed
// founding, and rule 6 ends a group without a majority.
//
// Under one raft ID, only one incarnation of one instance starts an empty replica, and only once. A
// retired replica never resumes.
//
// With a directory (Config.Durable), a group whose directories are intact is never given up, and no
// second group is founded beside it, however often and wherever its instances restart.
//
// # With a directory
//
// State returns what must be stored, and Revision counts the changes of State. If Revision has
// changed after an Ask or a Tick, the host stores State atomically before it sends the answer,
// carries out the events and asks the questions. If storing fails, the host drops the answer, and
// Unsaved returns the actions that are still allowed. So other instances observe only changes that
// are already stored.
//
// An instance that starts with a stored charter has the phase Bound or Member and the stored ID.
// It first settles (Settling): it asks every known address until all have answered or refused,
// for at most a second and a half. If a process with its ID answers at another address, or
// another instance reports a newer start or another process of this start, the directory is a
// copy or was restored from a copy. The same follows if its log lacks what it has acknowledged
// (WentBack).
// The instance is then barred forever (Barred), because with an older log it could take back
// votes that it gave. Other instances ignore an instance that settles.
//
// The time of rule 5 counts only while this instance reaches every instance that the settings
// require. Otherwise one instance could learn Born and keep the group, while the other instances
// restart one by one and give the charter up.
//
// An instance that keeps a group in its directory blocks founding (rule 7) at any address at which
// it answers, not only at a Join address.
//
// # Recovery
//
// If a group with directories has lost its majority for good, an operator calls Recover on each
// remaining instance of the group. Recover is refused while an instance in reach knows a leader.
// After Recover the instance is newborn, its directory records the group that was given up, and the
// next charter names that group (Supersedes).
//
// A member that was out of reach leaves such a group by itself when it meets the new group under
// the conditions of "Which reports are believed". Until then it blocks founding if it is a founder,
// or has a directory and answers at a Join address. Waiting then names the member.
//
// The founding time is later than every clock and every token of an instance on the list (Floor).
// If the old majority is still running where the operator cannot reach it, Recover creates a second
// group.
//
// # Concurrency
//
// A Core is not safe for concurrent use; one goroutine owns it. Inputs are only recorded, and Tick
// makes all decisions, except that the answer of Ask binds the instance immediately. Times are
// durations since any fixed origin. The core does no I/O, reads no clock and draws no random
// number.
//
// # Failure
//
// Silence never counts as an answer. With Replicas, a silent Join address blocks founding. With
// several Founders, a silent founder blocks founding. With one founder, any silent Join address
// blocks founding. A name in Join that cannot be resolved always blocks founding. Waiting names
// what is missing and what to do. An answer counts for two seconds after the question was sent, and
// only for the incarnation that gave it. An answer that cannot be decoded counts as silence.
//
// # Limits
//
// A copied directory is detected when the two processes meet; both take part until then. If all
// directories are restored together to an earlier time, no instance can detect it. It is unsafe to
// set Replicas to less than the number of running instances: during a partition each side may have
// that many instances.
//
// A list has at most 1,024 instances, a group has at most 7 voters, and a message has at most 1
// MiB. With Replicas each of at most 16 instances asks every other instance about 7 times a second
// until the group is founded. A configuration of more than 16 replicas is ignored, because no
// message can carry it. The other limits are in limits.go.
//
// The core remembers 128 used raft IDs of an incarnation. For earlier IDs it keeps only a
// configuration number. It refuses a Prepare with this number or a lower one if it does not
// remember the ID.
//
// # Decisions beyond the rules
//
// A member stays in its group if any instance reports a leader of that group. An answer about a
// leader counts only if its question was asked after the largest TTL had passed, because an earlier
// answer may describe an earlier state.
//
// Before proposing, an instance waits until every instance on the future list reports that nothing
// prevents it from accepting. So each instance can report why founding waits.
//
// # Refused alternatives
//
// With two-phase commit, one crash could leave the other instances waiting forever. Instead the log
// of the tentative group decides, and an instance that does not learn the outcome restarts in
// place, which is as safe as a kill and a new start.
package founding
