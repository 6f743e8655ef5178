// Package voters decides who should vote in a group that is born: a pure function of what its
// leader sees.
//
// Raft makes any change of voters that it is told to make. This package is what tells it:
// [Reconcile] looks at the committed configuration, at who is registered and who is heard of, and
// names the one next step, or none. The leader carries the step out and asks again. Nothing is
// remembered between two steps, so a new leader that asks with its own view goes on where the one
// before stopped. [Explain] is the same look for people, [MayStop] and [AllLeaving] are what a
// leaver asks.
//
// # What happens to an instance
//
// These are rules 8 to 13 of the design, seen from one instance. Only the arrows marked with a star
// are entries of the log, one at a time:
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
// How many: with E eligible instances there are min(Voters, E) replicas. The largest odd number of
// them vote; if that leaves one over, it is a learner that has caught up, so that a third instance
// makes three voters in one change, and a last voter that leaves has a successor.
//
// What a change is for, in this order: an odd number; the number that is wanted; nobody who is dead
// or goes. A change that makes none of these better is not made, but for zones, see below. Among
// equally good voters those that are heard of come first, then those that vote already, then the
// better spread over zones.
//
// A leader that goes does one thing only: it hands the lead to a voter that stays and has all of
// its log, and if there is none, it has one promoted beside it. It is removed by its successor.
//
// # Guarantees
//
//   - A Change is proposed only if a majority of the voters that are there, and of those that would
//     be, is heard of now.
//   - The leader is in every configuration that it proposes.
//   - The number of voters is odd, except where the only voter leaves and has but one successor:
//     two, until that one leads.
//   - A replica gets a vote only when it knows the present configuration, and so whose each other
//     replica is.
//   - Nobody gets a vote who is no founder where there are founders, has no session, has not caught
//     up, leaves, or shares its process or its founder's name with another voter.
//   - Nobody loses its vote for having no session, for a silence shorter than the limit, or for
//     gossip.
//   - Nothing is proposed while a change is in flight.
//   - With nothing going on, the group reaches the wanted voters and rests there.
//   - The number of changes is at most about three for each loss. Where losses are counted
//     (Registered.Lost) it does not grow with them: who was lost three times in two minutes is not
//     brought in. Where the others are too few for a majority of those who are there, it is.
//
// # Concurrency
//
// Pure functions of a value. They change nothing and may be called from anywhere, on any goroutine.
// A Steward belongs to one.
//
// # Failure
//
// There are no errors. What the view does not say is no reason for a change: a replica without an
// entry is not heard of and not dead, one whose registration is not known is in no zone and as good
// as a founder. Step.Why says in every case what is waited for.
//
// # Limits
//
// The view is what one leader has seen, and up to an election timeout old. Whoever is counted on
// and goes in that moment can make a change hang until somebody comes back: with two voters at
// once, with three or more if another of them is missing already.
//
// # Decisions where the rules left room
//
//   - Silence up to the limit keeps a voter in E. Otherwise half a second of silence would turn
//     three voters into one. Whether a change can be committed asks only who is heard of now.
//   - The limit is counted from when this leader began to lead, and being heard of by an earlier
//     leader is nothing. Otherwise a new leader takes a learner that went silent for present, makes
//     two voters of one, and waits for it: the walk of the tests found this.
//   - With a directory a life that is over is no death: a process that restarts refuses connections
//     too. It is only not heard of.
//   - A voter with no session stays, but a learner without one is not promoted: rule 8 asks for
//     registered ones.
//   - Instances that refused Prepare, or did not answer for 5 s, count as not there for 5 s more,
//     then they are asked with another ID. Otherwise one instance that cannot start a replica keeps
//     a dead voter in for ever, because there is "a candidate". Explain says Due meanwhile: a
//     rolling restart that went on would come to the one voter that is left.
//   - An instance that was lost three times is brought in all the same where fewer than a majority
//     of those who are there would vote without it: with three instances, always. Otherwise three
//     rolling restarts in two minutes, or one founder that is killed again and again, leave one
//     vote for three who are there, and its restart ends the group. That costs up to three changes
//     for each loss, which is the lesser evil.
//   - A life whose address has refused once, or answered as another, is over until there is a
//     stream with it again; it is not probed meanwhile. A firewall that refuses costs a voter its
//     place for that, never the group: a change still needs the majority of those who are heard of.
//   - Losses are counted by each instance while it leads, under the name, so a new leader begins at
//     nothing. What comes and goes without a replica is not counted: for the sake of its zone it
//     may be tried again every two minutes.
//   - "No candidate: shrink" means that shrinking waits while a candidate is on its way, also one
//     that catches up slowly.
//   - A learner beyond those wanted is kept while a voter is silent or was lost lately. Otherwise a
//     voter that comes and goes with a period of just over the limit has its replacement added and
//     removed each time.
//   - Zones decide who is chosen. For them alone a voter is exchanged only if all voters are well
//     and were not lost lately, the spread gets strictly better, and who comes was not lost lately;
//     else a member that flaps is taken in and out for the sake of its zone. The leader is never
//     exchanged, so that zones never move the lead.
//   - Several voters that are dead or go are replaced one by one if the learners come one by one,
//     each at once: a dead voter is worse than one more change. Those that are ready together go in
//     one.
//   - A leader that leaves as the only voter, with two learners at hand, has both promoted: three
//     instead of the two that rule 12 allows.
//   - One vote for each founder's name, as far as this leader has seen them registered: of a
//     replica whose session ended before it began to lead it does not know the name. Two processes
//     that go by one name could otherwise outvote the founders, whose being newborn is taken as
//     proof that no older group lives. A founder that was killed takes its own place under a new ID
//     as soon as the old life is known to be over.
//   - Prepare asks everybody who is needed before one is added, since nothing else can be done
//     while an entry is in flight.
//   - A learner that lives and never catches up is not given up. Time alone does not tell a large
//     state from a fault.
//   - AllLeaving looks at the instances in reach: one that is gone and has not expired is no
//     successor either.
//
// # What the caller must see to
//
// Without a Steward: an ID that has been in a configuration is Ended in Prepared, whatever its
// instance said last. Otherwise a learner that was removed and has not heard of it is added again
// under the same ID.
//
// With one: Begin when a lead begins, before the first Look; Look when any of the facts may have
// changed, after Answered, Probed and Retired, and when Step.Next is over; after each Look, Probes,
// each given up after 1.5 s; and what it says is asked for only while this instance leads. Fresh
// IDs are random, never used before. Two looks may ask for the same change, since the first has not
// shown yet: only one may be in flight, and one that was made of an older configuration than the
// applied one is dropped, above all an AddLearner of an ID that was added and removed since.
//
// An instance that is prepared anew, by the same leader or the next, ends the replica that it
// started before and that no configuration names. It refuses what is asked in an earlier term than
// the last that it answered.
//
// After each change the leader proposes an entry of its own if nothing else is proposed, since
// Replica.Settled waits for one: else a leaver waits until its time is over.
//
// # Where this goes beyond the rules as they were written
//
// Rule 13 lets a leaver stop when another leader has applied a configuration without it. That is
// too early by one message. Say {1,2,3} becomes {1,2,4}, and the end of the joint configuration is
// committed by 1, 3 and 4; 2 does not have it, and 4 has it and does not know that it is committed.
// Leader 1 has applied it, tells 3 to stop, and dies. 4 is still in the joint configuration and
// needs the votes of two of {1,2,3}; 2 has the shorter log. Two of three voters live, and nobody is
// ever elected (seen with raft v3.7.0: none in 5,000 ticks). So MayStop also asks that every voter
// that is heard of is Settled. A majority of them is not enough: one that is not settled can have
// the longest log. Nor is it enough to ask every voter that is heard of: a leader that hears of
// none still leads for an election timeout, and knows it alone. So both must hold.
//
// # Refused alternative
//
// Letting gossip's view of who is alive drive the set of voters. It flaps with packet loss, and
// every flap would be a change of configuration. Also a plan of several steps that the leader keeps
// or logs: it is wrong as soon as anything else happens, and whoever takes over must understand a
// stranger's plan. Recomputing the next step costs a few microseconds.
package voters
