// Package voters decides which replicas vote in a founded group. It is a pure function of what the
// group's leader sees.
//
// [Reconcile] reads the committed configuration, the registered instances, and which of them the
// leader hears from. It returns the single next step, or none. The leader carries the step out and
// asks again. Nothing is remembered between two steps, so a new leader continues where the last one
// stopped. [Explain] describes the same state for people. [MayStop] and [AllLeaving] answer an
// instance that leaves.
//
// # The rules
//
// The code cites these rules by number:
//
//   - Rule 8: an instance is eligible if it has a session, the leader has a stream with it, it is
//     not leaving, and it is a founder if there are Founders.
//   - Rule 9: an instance gets a replica by Prepare, which starts it empty. It is added as a
//     learner only when that replica runs.
//   - Rule 10: one change sets the voters. Replicas that are dead, leaving or not needed are
//     removed; others may stay as learners.
//   - Rule 11: a replica is dead if it was silent for the limit (5 s in memory, a minute with a
//     directory), or if in memory its life is known to be over.
//   - Rule 12: a leader that leaves hands the lead to another voter first.
//   - Rule 13: a leaver may stop once its vote cannot be needed any more (MayStop), or if all
//     instances leave (AllLeaving). Only a leader that knows the newest configuration can tell.
//
// # What happens to an instance
//
// Arrows marked with a star are entries of the log, one at a time:
//
//	              Prepare             *AddLearner            *Change: promoted
//	(plain) ----------------> asked ----------------> learner ----------------> voter
//	   ^                        |                      |  ^                       |
//	   |  refused, no answer    |                      |  +-----------------------+
//	   |  in 5 s: left alone    |                      |   *Change: demoted, the   |
//	   +------------------------+                      |   number shrinks          |
//	   |                          *Change: removed     |                           |
//	   +-----------------------------------------------+---------------------------+
//	      dead, leaving, no founder any more, not needed
//
// With E eligible instances there are min(Voters, E) replicas. The largest odd number of them vote.
// If one is left over, it is a learner that has caught up. Then a third instance makes three voters
// in one change, and a last voter that leaves has a successor.
//
// A change serves these goals, in this order: an odd number of voters, the wanted number, and no
// voter that is dead or leaving. A change that improves none of them is not made, except for zones.
// Among equally good voters, those heard from come first, then those that vote already, then the
// better spread over zones.
//
// A leader that leaves only hands the lead to a voter that stays and has all of its log, and first
// promotes one if there is none. Its successor removes it.
//
// # Guarantees
//
//   - A Change is proposed only if the leader hears from a majority of the present voters and of
//     the new ones.
//   - The leader is in every configuration that it proposes.
//   - The number of voters is odd. The exception: if the only voter leaves and has only one
//     successor, two vote until the successor leads.
//   - A replica gets a vote only when it knows the present configuration, and so the instance of
//     every other replica.
//   - A replica gets no vote if it is not a founder where there are founders, has no session, has
//     not caught up, is leaving, or shares its process or its founder's name with another voter.
//   - A voter does not lose its vote for having no session, for a silence shorter than the limit,
//     or because of gossip.
//   - Nothing is proposed while a change is in flight.
//   - Without new events the group reaches the wanted voters and makes no further change.
//   - The number of changes is at most about three for each loss. Where losses are counted
//     (Registered.Lost), it does not grow with them: an instance that was lost three times in two
//     minutes is brought in only if the others are too few for a majority of the instances present.
//
// # Concurrency
//
// All functions are pure functions of a value and may be called from any goroutine. A Reconciler
// belongs to one goroutine.
//
// # Failure
//
// There are no errors. Missing information is no reason for a change. A replica without an entry
// counts as not heard from and not dead. A replica with an unknown registration is in no zone and
// counts as a founder. Step.Why always gives the reason for waiting.
//
// # Limits
//
// The view is what one leader has seen, and up to an election timeout old. If a replica that was
// counted on dies in that time, a change can hang until one comes back: with two voters at once,
// with three or more if another of them is missing already.
//
// # Decisions where the rules left room
//
//   - A voter stays eligible while it is silent for less than the limit. Otherwise half a second of
//     silence would turn three voters into one.
//   - The limit counts from when this leader began to lead. Otherwise a new leader could take a
//     silent learner for present, make two voters of one, and wait for it. The walk test found
//     this.
//   - With a directory a life that is over does not make a replica dead, since a restarting process
//     refuses connections too. It only counts as not heard from.
//   - A voter without a session stays, but a learner without one is not promoted: rule 8 requires a
//     session.
//   - An instance that refused Prepare, or did not answer for 5 s, counts as absent for 5 s more,
//     and is then asked with another ID. Otherwise one instance that cannot start a replica would
//     keep a dead voter in forever. Explain reports Due meanwhile, so that a rolling restart does
//     not stop the last voter.
//   - An instance that was lost three times is brought in all the same if without it fewer than a
//     majority of the instances present would vote: with three instances, always. Otherwise three
//     rolling restarts in two minutes, or one founder that is killed repeatedly, could leave a
//     single voter, whose restart would end the group. The price is up to three changes for each
//     loss.
//   - A life whose address has refused once, or has answered as another instance, is over until the
//     leader has a stream with it again. It is not probed meanwhile. A firewall that refuses can
//     cost a voter its place, but never the group: a change still needs a majority of replicas that
//     are heard from.
//   - Each leader counts losses under the instance's name, from zero. An instance without a replica
//     is not counted, so it may be tried again every two minutes to improve the zones.
//   - The group does not shrink while a candidate is on its way, even if it catches up slowly.
//   - A learner beyond the wanted number stays while a voter is silent or was lost lately.
//     Otherwise a voter that disappears periodically for just over the limit would have its
//     replacement added and removed each time.
//   - A voter is exchanged for zones alone only if all voters are well and were not lost lately,
//     the spread gets strictly better, and the new one was not lost lately. Otherwise a flapping
//     member would be exchanged again and again. The leader is never exchanged, so zones never move
//     the lead.
//   - Several voters that are dead or leaving are replaced as their learners become ready: a dead
//     voter is worse than one more change. Learners that are ready together are promoted in one
//     change.
//   - A leader that leaves as the only voter, with two learners at hand, has both promoted. That
//     makes three voters instead of the two that rule 12 allows.
//   - Each founder's name has one vote, as far as this leader has seen registrations. It does not
//     know the name of a replica whose session ended before it began to lead. Two processes with
//     one name could otherwise outvote the founders, whose newborn state is taken as proof that no
//     older group lives. A founder that was killed takes its own place under a new ID as soon as
//     its old life is known to be over.
//   - All needed instances are asked with Prepare before one is added, since nothing else can be
//     done while an entry is in flight.
//   - A learner that lives and never catches up is kept. Time alone does not distinguish a large
//     state from a fault.
//   - AllLeaving considers the instances in reach. One that is gone and has not expired cannot
//     succeed either.
//
// # What the caller must do
//
// Without a Reconciler: an ID that has been in a configuration is Ended in Prepared, whatever its
// instance last answered. Otherwise a removed learner that has not learned of its removal would be
// added again under the same ID.
//
// With a Reconciler:
//
//   - Call Begin when a lead begins, before the first Look.
//   - Call Look when a fact may have changed, after Answered, Probed and Retired, and when
//     Step.Next is over.
//   - After each Look call Probes and send its questions. Give each up after 1.5 s.
//   - Carry out a Step only while this instance leads.
//   - Draw fresh IDs at random; never reuse one.
//   - Have at most one change in flight: two Looks may return the same step before the first has
//     taken effect. Drop a step that was computed from a configuration older than the applied one,
//     above all an AddLearner of an ID that was added and removed since.
//
// An instance that is prepared again ends the replica that it started before if no configuration
// names it. It refuses a Prepare from an earlier term than the last one that it answered.
//
// After each change the leader proposes an entry of its own if nothing else is proposed, since
// Replica.Settled needs one. Otherwise a leaver waits until its time is over.
//
// # Where this goes beyond the rules
//
// It is not enough that another leader has applied a configuration without the leaver. Example:
// {1,2,3} becomes {1,2,4}, and the end of the joint configuration is committed by 1, 3 and 4.
// Replica 2 does not have it, and 4 has it but does not know that it is committed. Leader 1 has
// applied it, tells 3 to stop, and dies. Replica 4 is still in the joint configuration and needs
// the votes of two of {1,2,3}; 2 has the shorter log. Two of three voters live, and none is ever
// elected (with raft v3.7.0: none in 5,000 ticks).
//
// So MayStop also requires that every voter that is heard from is Settled: the one that is not can
// have the longest log. And it requires a majority of all voters to be Settled: a leader that hears
// from none still leads for an election timeout, and only it knows.
//
// # Refused alternatives
//
// Voters by gossip's view of which instances are alive: it flaps with packet loss, and every flap
// would change the configuration.
//
// A plan of several steps that the leader keeps or logs: it is wrong as soon as anything else
// happens, and the next leader has to understand it. Recomputing the next step costs a few
// microseconds.
package voters
