// Package voters decides which replicas vote in a founded group. Its decisions depend only on the
// facts that the group's leader passes to the package.
//
// [Reconcile] reads the committed configuration, the registered instances, and whether each of
// them is in contact with the leader. It returns the next step, or no step. The leader carries
// the step out and calls Reconcile again. Reconcile stores nothing, so a new leader continues
// where the last leader stopped. [Explain] describes the same state for people. [MayStop] and
// [AllLeaving] answer an instance that leaves, and [Heir] an operator who moves the leadership.
//
// # The rules
//
// The code cites these rules by number:
//
//   - Rule 8: an instance is eligible if it has a session, the leader has a stream with it, it is
//     not leaving, it knows the lock rules in force, and it is a founder if Settings.Founders is
//     set.
//   - Rule 9: the leader asks an instance by Prepare to start an empty replica. The replica is
//     added as a learner only when it runs.
//   - Rule 10: one change of the configuration makes the wanted replicas the voters. Replicas
//     that are dead, leaving or not needed are removed; others may remain as learners.
//   - Rule 11: a replica is dead if it was silent for the limit (5 s in memory, a minute with a
//     directory). In memory it is also dead if its incarnation is known to have ended. With a
//     directory it is also dead if that directory is lost: the leader has no stream with it, and
//     another instance with its name has proved its own key at its address.
//   - Rule 12: a leader that leaves first transfers its leadership to another voter. It prefers the
//     newest build (the rules version, then Registered.Build), then fewer losses, then the latest
//     registration.
//   - Rule 13: an instance that leaves may stop once its vote cannot be needed any more (MayStop),
//     or if all instances leave (AllLeaving). Only a leader that has the newest configuration can
//     decide this.
//
// # What happens to an instance
//
// Arrows marked with a star are entries of the log. Only one is in flight at a time:
//
//	              Prepare             *AddLearner            *Change: promoted
//	(plain) ----------------> asked ----------------> learner ----------------> voter
//	   ^                        |                      |  ^                       |
//	   |  refused, no answer    |                      |  +-----------------------+
//	   |  in 30 s: left alone   |                      |   *Change: demoted, the   |
//	   +------------------------+                      |   number shrinks          |
//	   |                          *Change: removed     |                           |
//	   +-----------------------------------------------+---------------------------+
//	      dead, leaving, no founder any more, not needed
//
// With E eligible instances there are min(Voters, E) replicas. The largest odd number of them
// vote. If the number of replicas is even, one of them remains a learner that has caught up, so a
// third instance makes three voters in one change.
//
// A change serves these goals, in this order: an odd number of voters, the wanted number, and no
// voter that is dead or leaving. Apart from these goals, a change is made only to improve the
// zones. Among equally good choices, voters in contact with the leader are preferred, then
// replicas that vote already, then voters that are spread better over zones.
//
// A leader that leaves transfers its leadership to a voter that stays and has the whole log, and
// leaves all other changes to this voter. If no voter that stays is in contact, the leader first
// promotes a learner. The new leader removes the old leader.
//
// # Guarantees
//
//   - A Change is proposed only if the leader is in contact with a majority of the current voters
//     and a majority of the new voters.
//   - The leader is in every configuration that it proposes.
//   - The number of voters is odd, with one exception: if the only voter leaves and has only one
//     successor, both vote until the successor leads.
//   - A replica gets a vote only when it has the current configuration, and therefore knows the
//     instance of every other replica.
//   - A replica gets no vote if it has no session, has not caught up, is leaving, shares its
//     process or its founder's name with another voter, or is not a founder while
//     Settings.Founders is set.
//   - If Settings.Replicas is set, no more instances than that get a replica. Voters that exist
//     keep their vote even if there are more.
//   - A voter does not lose its vote because of a missing session, a silence shorter than the
//     limit, or gossip.
//   - Nothing is proposed while a change is in flight.
//   - Without new events the group reaches the wanted voters and makes no further change.
//   - A loss of a replica causes at most about three changes. If losses are counted
//     (Registered.Lost), an instance that is lost repeatedly soon causes no further changes,
//     unless its vote is needed.
//
// # Concurrency
//
// All functions are pure and may be called from any goroutine. A Reconciler belongs to one
// goroutine.
//
// # Failure
//
// There are no errors. Missing information is no reason for a change. A replica without an entry in
// View.Replicas counts as out of contact and not dead. A replica of an unknown instance is in no
// zone and counts as a founder. Step.Why always contains the reason for waiting.
//
// # Limits
//
// A View contains the observations of one leader, up to an election timeout old. If a needed
// replica fails in that time, a change can hang until a replica returns. With three or more
// voters, this can happen only while another voter is missing, too.
//
// # Decisions where the rules left room
//
//   - A voter remains eligible while it is silent for less than the limit. Otherwise half a second
//     of silence would reduce three voters to one.
//   - The limit is measured from the time when this leader begins to lead. Otherwise a new leader
//     could count a silent learner as present, change one voter to two, and wait for the learner.
//   - With a directory, the end of an incarnation does not make a replica dead, since a
//     restarting process refuses connections too.
//   - A voter without a session keeps its vote, but a learner without a session is not promoted.
//   - With a directory, several voters that have lost their directories at once are replaced one by
//     one. While the instance that answers in place of a voter refuses Prepare, the voter is not
//     dead, since with one vote instead of three the next loss would end the group.
//   - An instance that refused Prepare counts as absent for 5 s, and is then asked with another
//     ID. An instance that cannot start a replica would otherwise count as present and keep a dead
//     voter in the configuration forever. During these 5 s Explain sets Due, so that a rolling
//     restart does not stop the last voter.
//   - An instance that does not answer Prepare is asked again every second with the same ID, since
//     its disk may be slow and the answer to the earlier question late. It counts as present for 30
//     s, then as absent for 5 s. After the first 5 s another instance is asked, if there is one.
//   - An instance that was lost three times in two minutes gets a replica only if otherwise
//     fewer than a majority of the instances present would vote. With three instances it
//     therefore always gets one. Otherwise three rolling restarts in two minutes could leave a
//     single voter, whose restart would end the group.
//   - An incarnation whose address has refused once, or has answered as another instance, counts as
//     ended until the leader has a stream with it again. A firewall that refuses can cost a voter
//     its vote, but cannot end the group: a change still needs a majority of replicas in contact.
//   - Each leader counts losses by the instance's name, from zero. Losses of an instance without a
//     replica are not counted.
//   - The group does not shrink while a candidate is being added, even if the candidate catches up
//     slowly.
//   - A learner above the wanted number is kept while a voter is silent or was lost recently. A
//     voter that disappears again and again would otherwise cause two changes each time.
//   - A change whose only purpose is better zones requires that all voters are well and were not
//     lost recently, that the spread becomes strictly better, and that the new voter was not lost
//     recently. The leader is never replaced for its zone.
//   - Several voters that are dead or leaving are replaced one by one as learners become ready.
//     Learners that are ready together are promoted in one change.
//   - If the only voter leaves and there are two learners, both are promoted. This makes three
//     voters, where rule 12 would allow two.
//   - Each founder's name has one vote, as far as this leader has received registrations. If a
//     name could have two votes, two processes with one name could outvote the other founders.
//     That would break founding: if enough founders belong to no group, founding concludes that
//     no older group exists. A founder that was killed gets a vote with a new ID as soon as its
//     old incarnation is known to have ended.
//   - All needed instances are asked with Prepare before one is added, since nothing else can be
//     done while an entry is in flight.
//   - A learner that runs and never catches up is kept. Time alone does not distinguish a large
//     state from a fault.
//   - AllLeaving considers only instances in contact.
//
// # What the caller must do
//
// Without a Reconciler, set the State of an ID in View.Prepared to Ended once the ID was in a
// configuration. If the State remained Running, a removed learner would be added again under the
// same ID.
//
// With a Reconciler:
//
//   - Call Begin when this instance begins to lead, before the first Look.
//   - Call Look when a fact may have changed, after Answered, Probed and Retired, and after
//     Step.Next.
//   - Call Probes after each Look and send the returned probes. End each probe after 1.5 s.
//   - Carry out a Step only while this instance leads.
//   - Choose fresh IDs at random and never reuse an ID.
//   - Have at most one change in flight, since two calls of Look may return the same step.
//   - Drop a step that was computed from a configuration older than the applied one.
//
// An instance that receives another Prepare ends the replica of the previous one, unless a
// configuration contains that replica. It refuses a Prepare whose term is lower than the term of
// the last Prepare that it answered.
//
// After each change the leader proposes an entry of its own if nothing else is proposed, since
// Replica.Settled requires this entry. Without the entry, a leaver would wait until the time
// limit of its Leave.
//
// # Where this goes beyond the rules
//
// A leaver could stop too early if it only waited until another leader has applied a
// configuration without it. Example: the voters {1,2,3} become {1,2,4}, and the end of the joint
// configuration is committed by 1, 3 and 4. Replica 2 does not have that entry, and replica 4
// does not know that it is committed. Leader 1 has applied it, allows 3 to stop, and fails.
// Replica 4 is still in the joint configuration and needs the votes of two of {1,2,3}, and
// replica 2 has the shorter log. Two of three voters run, and no leader is ever elected.
//
// So MayStop also requires that every voter in contact is Settled, because a voter that is not
// Settled may have the longest log. MayStop also requires that a majority of all voters is Settled,
// because a leader without any contact still leads for an election timeout, and may be the only
// replica that knows the commit.
//
// # Refused alternatives
//
// Choosing the voters by gossip's view of running instances. This view changes with packet loss,
// and every such change would change the configuration.
//
// Storing a plan of several steps. The plan is wrong as soon as anything else happens, and the next
// leader has to understand it.
package voters
