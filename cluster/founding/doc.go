// Package founding decides how a group is founded once: who proposes, who accepts, when the group
// is born, how an instance whose group is lost becomes newborn again, and which replica of the
// group's log an instance has meanwhile. It is a pure state machine, [Core], one for each instance;
// the cluster room is its shell.
//
// An instance goes through one life after another. In each, it moves only forward:
//
//	             everybody on its list is bound                 Born applied here,
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
//	      from Member: no leader for longer than the largest TTL, nobody says that this group has one, and
//	                   every instance that a new group needs answers, and the group is dead (rule 6*)
//	      * with a directory: from Bound the time counts while everybody is in reach; from Member only if people
//	        have said so: Recover here, or elsewhere and the group that was founded in its place is met
//
// As a member, or bound, it may have a replica of the group's log. Each has a raft ID of its own,
// once:
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
// Configurations have numbers, and the higher one is the newer one, whether it was applied here
// (Voters) or told by an instance that is believed about it (see below): in an answer, an Announce,
// or a Prepare. A Prepare of another ID is refused while the newest configuration that is known
// names the present one, and if a later leader has prepared this life since: a leader of before
// ends nobody's vote. The same Prepare again is answered with Running, or with Ended once that ID
// is over, and changes nothing. A replica that was only prepared is in no configuration yet, so
// none that does not name it removes it. One that was removed has no ID to be prepared under any
// more, and yet goes on, through starts with a directory too, until the host says Retired: voters
// that do not know yet that the configuration without it is committed may need its vote. If it was
// added and removed while nobody could tell, it stays, idle, until the next Prepare.
//
// Two questions are asked by the core. The answer to "Who are you?" also says whether the asked
// instance is bound to a charter, or knows that a group is born, and in which configuration. "Do
// you accept this charter?" is put by the proposer to each life on its list.
//
// # Which addresses are asked
//
// With Replicas, at most 16, each instance asks every address that Join names, that gossip knows,
// or from which it was asked. With Founders the questions of the whole fleet in a second are linear
// in its size, whatever the network loses (search.go):
//
//   - An instance that is no founder asks three addresses behind Join at a time, at random, and the
//     voters that it knows. Its first round comes after up to 250 ms, the next ones every one to
//     two seconds, or up to four times as seldom while nothing answers. No instance asks it back.
//     It waits for nothing but a member of a group that has a leader.
//   - A founder asks the founders that it has met about seven times a second. While one of them is
//     missing it searches: four questions at a time, to addresses behind Join and to those that
//     others have named.
//   - An answer names up to 16 addresses at which the asked instance has met founders. An answer of
//     a member names its voters. Such an address is a hint whom to ask, and nothing else. So it is
//     enough that Join names one instance of the fleet.
//   - A member with a leader asks one address behind Join and one voter every 30 to 60 s, for a
//     second group and a newer configuration. If an instance whose word does not count tells a
//     newer one, the leader is asked.
//
// # When a group in memory is given up
//
// A voter is alive if the same life has answered within four seconds that its replica runs. It is
// over if its replica can never vote again: its own life says that it runs no more, another life
// answers at its address or, with Founders, to its name, or it has said goodbye. A voter whose name
// was never learned is over once other lives answer to the names of all founders. Alive goes before
// over. A voter that is silent is neither. A group can elect if in one of these configurations the
// voters that are not over are a majority, of each half if it is joint: those that voters which are
// alive have applied, and the newest that is known. Else it is dead.
//
// The newest that is known may be hearsay: a leader applied it, told it and died before another
// replica had applied it. A candidate campaigns by the configuration that it has itself applied, so
// hearsay elects only if one of its voters has applied it, or may yet do so. It no longer counts
// when for thirty seconds without a break each of its voters was over, or ran and told that it had
// applied another configuration. In that time everything that the dead leader has sent arrives or
// is lost, since a link on which nothing is heard ends after 25 s. A voter that is silent, one that
// has applied nothing, and one of a build that does not tell keep the hearsay.
//
// A member gives up its group only if it has known no leader for longer than the largest TTL, no
// answer names one, all that a new group needs have answered since and lived at one time, and the
// group is dead. What a new group needs are the Founders of this instance and those of its group,
// together, also in the next life: an instance that names itself alone does not found beside the
// group that has adopted it. A life that is over stays over, so a dead group stays dead, and no
// order of questions, dials and elections makes the rule wrong.
//
// With Replicas, replacements at new addresses cannot be told from instances beside voters that are
// cut off. There a voter counts as over when it was silent for ten minutes while Replicas instances
// answered. This is the one case that time decides: a majority that is cut off for longer loses its
// group.
//
// Another group with a leader is a reason to go for an instance without a replica if no majority of
// its own group's voters answers, and for one with a replica only if its group is dead.
//
// # Whose word counts
//
// The transport proves which instance is at the other end of a connection, and nothing else: each
// holder of the secret is some instance, and may say what it likes. So the rules are these
// (believe.go).
//
//   - About itself an instance is believed: that it is newborn, bound or a member, its settings,
//     and as a voter with a directory its address. The ID is that of the connection and never in
//     the message.
//   - A configuration, whether in an answer, an Announce or a Prepare, is believed from an instance
//     that the newest known configuration names as voter, and from the leader that such a voter has
//     named (Guide). Numbers are bounded, so that no lie makes every true configuration an old one.
//   - From any other instance it is a hint. It changes nothing, and at most the voters that are
//     known are asked (Inquire).
//   - That this directory is a copy, or was restored from an older one, is believed from voters,
//     from the instances on the charter's list, and from the process itself that has proved the
//     same ID.
//   - That people have given up the group of this directory is believed from an instance of the
//     group that took its place, at an address that Join names, when none of the known voters has
//     answered for the largest TTL.
//   - A newborn knows no voter yet. It believes every instance that the transport lets ask and
//     answer.
//
// All voters may have been replaced while this instance was cut off. When none of those that it
// knows has answered for the largest TTL, a hint of a newer configuration ends this life, and the
// next one begins without a group: the locks are lost by then. A voter with a directory keeps its
// group, which may need its vote. It takes the newer configuration once a majority of the voters
// that this names has confirmed it, each by its own word.
//
// # Guarantees
//
// With Founders, or with Replicas equal to the number of instances that run, there are never two
// groups that are born and could both have a leader. The argument: Born is proposed only when every
// listed life was bound to the charter; a life is bound to one charter at most; a complete list has
// every founder, or every instance, on it; and a life that is over never votes again, since its
// raft IDs are bound to it. So when the second group is born, no voter of the first is left.
//
// With Founders this rests on the answers of the founders alone (founders.go). Only founders vote,
// and one process runs under each of their names. If every founder has answered within two seconds
// that it is newborn, or bound to this very charter, then no life that votes in an earlier group of
// theirs goes on. The address of another instance may be silent: no vote is there. In detail:
//
//   - A founder with a directory that holds a group is a member after each start, and not newborn.
//     So a group of directories blocks birth until a founder has lost its directory or people have
//     given the group up there. A majority of the voters that kept their directories would need a
//     majority of the founders, and each founder on the list is newborn.
//   - A charter that supersedes a group changes nothing in that: the founders that gave it up are
//     newborn lives. An instance that is no founder and keeps the old group in its directory has no
//     vote. If it answers behind Join, it blocks birth by name, as before; if it is not asked, it
//     goes by itself when it meets the new group.
//   - The list of founders can be renamed. All on the list of a charter have equal settings, but
//     the voters of an earlier group may be instances that only the earlier list names, and of
//     these no answer is needed. So a founder also asks other addresses behind Join, all of them or
//     16 at random, and founds nothing while one of them belongs to a group that has a leader, is a
//     member of a group of other founders, or is bound to another charter. That is no proof. If a
//     list is replaced by one that shares no majority with it while the earlier group lives in
//     memory and no member of it can be reached, two groups can have leaders. Rename through a
//     group that has a leader (rule 15), or stop the earlier instances first. A single founder has
//     no majority to share and no founder to ask: it founds nothing while an address behind Join
//     is silent.
//   - A name that two processes have is found out if both answer, and then nothing is founded. If
//     one of them cannot be reached, it may vote in an earlier group; a majority of such processes
//     would be two groups.
//
// A group that is born later has a later founding time, if the clocks on its list agree within half
// the grace with those on the list of the earlier one and the earlier one lived long enough to
// grant anything.
//
// No instance that does not vote can change what a member knows of its group, end its replica or
// spend its raft ID, as long as a voter answers that member.
//
// Nobody is stuck once everybody can be reached: a birth that failed ends by rule 5, a group
// without a majority by rule 6.
//
// A raft ID has one life of its data: a replica begins empty under an ID once, in one life of one
// instance, and never goes on after it has retired.
//
// With a directory (Config.Durable) nothing is said that a crash can take back, a raft ID is used
// with one log only, and a group whose directories are intact is never given up and never doubled,
// however often and wherever its instances are started again.
//
// # With a directory
//
// The core does no I/O. It says what must be stored (State) and counts its changes (Revision), and
// the contract is one of order: after every Ask and every Tick, if Revision has changed, State is
// stored in one unit, and only then may the answer leave, the events be carried out and the
// questions be put. If that fails, the answer is dropped, and Unsaved says what is left to do. So
// the acceptance of a charter with its raft ID, Born known, joining a running group, a replica
// prepared, removed or retired, and the restart in place, which takes charter and raft ID out of
// the State, are all durable before anybody can know of them. Who dies before the save has said
// nothing; who dies after it goes on.
//
// A start with a stored charter begins as Bound or Member with the stored ID. It first looks around
// (Settling): it asks everybody it can find, the address of its last life among them, until all
// have answered or refused, at most a second and a half. A process with its ID that lives there, or
// word of a newer life than its own, bars it for ever (Barred, in the State): its directory was
// copied or restored from an older copy, and a raft ID with an older log would take back its votes.
// Instances that resume do not count for others until they take part, so that a copy that is turned
// away leaves no trace.
//
// A newborn that starts again takes a new ID: what it has refused in its last life was not stored,
// and "not answered before in this life" would not be true of it.
//
// Rule 5 as written, 10 s and a random time, is safe with directories too, but may get everybody
// stuck: one instance has learned Born, and keeps the group for ever (rule 6); all processes die;
// the others start again one by one, each gives up, and the group has lost its majority though no
// directory is lost. So the time counts only while everybody that the settings ask for is in reach.
// Nothing is lost by that: before that no other group could be founded either.
//
// Rule 7 holds wherever a directory's claim is met, not only at an address that Join names.
//
// # Recovery
//
// A directory's group that has lost its majority for good is given up by people, with Recover, on
// each instance of it that is left. It is refused while anybody in reach knows a leader. The
// instance is newborn then and remembers in its directory what was given up; the charter of what is
// founded next names all that (Supersedes), and a member of one of those, without a leader, that
// meets the new group where Join says, and has not heard a voter that it knows for the largest TTL,
// goes by itself. A founder that keeps the old group blocks birth until then, by name, and so does
// another instance that keeps it in a directory, if it answers behind Join. The founding time is
// above every clock and every token that anybody on the list has seen (Floor), and if that is
// further ahead of a clock than rule 3 allows, nothing is founded, and Waiting says why. If the old
// majority lives elsewhere, out of reach of whoever says Recover, the operator has made two groups.
//
// # Whose word counts
//
// An instance proves its ID and nothing else, and every holder of the secret is some instance. What
// is told of the configuration, of the birth and of lives counts if a voter of the newest
// configuration that is known tells it, the leader to which this instance is attached, or, of the
// birth, an instance on the charter's list. All else is a hint whom to ask. An instance that
// belongs to no group has no one to go by, and trusts those that it meets; so does one in memory
// that has heard no voter that it knows for the largest TTL, and one whose group seems to be
// superseded at an address that Join names. A directory is not given up for less: if all voters
// that it knows have lost theirs, or are gone, while it was out of reach, it waits until people
// empty it.
//
// # Concurrency
//
// A Core is not safe for concurrent use; one goroutine owns it. Inputs only take note. Tick
// decides, except that Ask gives its answer, and binds the instance by it, at once. Times are
// durations since any fixed origin; the core reads no clock and draws no random number.
//
// # Failure
//
// Silence is never an answer. With Replicas it blocks birth while an address that Join names is
// silent; with Founders, while a founder is, and with one founder, while any such address is.
// Waiting names the address or the founder and the way out. A name in Join that cannot be resolved
// blocks birth in both cases. An answer proves something for two seconds from the asking, and only
// about the life that gave it. Bytes that cannot be understood count as silence, because they may
// come from one of us in a newer version.
//
// # Limits
//
// What bars a copy is found out when they meet. A copy that is started while its original cannot be
// reached takes part until they do; then the older life goes. Lives are remembered for 1,024
// instances, those of voters durably, with the address book; if all directories are restored to an
// earlier time together, nobody is left who could tell.
//
// 128 raft IDs of one life are remembered when they are over. Of those before them it is known
// which configurations are too old for a Prepare to be about another ID; such a Prepare is refused.
// A configuration of more than 16 replicas is not taken: no message carries it. 16 groups given up
// are remembered by an instance, 256 named by a charter.
//
// 1,024 on a list, 7 voters, messages of 1 MiB. With Replicas each of at most 16 instances asks
// each other about 7 times a second until the group is born. With three founders, 256 instances
// start three to six questions a second each at the most. Hints of 64 addresses are kept for a
// minute. Replicas below the number of instances that run is not safe and cannot be made so: while
// the network is cut, each side may be as many as Replicas asks for.
//
// # Where this goes beyond the rules as they were written
//
// Rule 6 as written lets a member stay while anybody in reach belongs to a group with a leader,
// whichever group. Then a member whose group has lost all its voters could never leave it for the
// group that the founders have founded since. So only a leader of its own group is a reason to
// stay, and a leader of another is one to go: that the other was founded proves that no voter of
// its own is left. And the answers that rule 6 rests on must be to questions asked after the
// largest TTL was over, since older ones may tell of the time before.
//
// The questions "are you bound to this charter?" and "is it born?" are part of "who are you?". A
// life never leaves its charter, so the answer is the same, and there is one message less that can
// be lost, repeated or answered by the wrong life.
//
// A proposer waits until everybody it would list says that nothing keeps it from accepting. Rule 3
// still decides; this only avoids charters that would be refused, and lets each instance name what
// all are waiting for.
//
// Rule 6 takes instances for different ones only if they were met at once. One that was restarted
// at another address would otherwise count twice for a few seconds, and a living group would be
// given up.
//
// # Refused alternatives
//
// A Prepare that is only remembered by its leader, or in the log: it is the instance that must
// never begin twice under one ID, so it is the instance that remembers, in the place where its life
// is.
//
// Two-phase commit, where an instance that accepted is in doubt until it hears the outcome: the
// crash of one instance leaves the others in doubt for ever. Here the tentative group's own
// replicated log decides, and whoever is in doubt forgets everything and begins anew, which is as
// safe as being killed and started again.
package founding
