// Package replica is what a voter decides between its log, its state machine, the keeper of the
// sessions and its cluster. It decides what follows from each entry, which sessions exist, the
// facts about the voters, which settings and rules all instances agree on, and a leader's answers
// about the locks. internal/instance and the simulation run the same code.
//
//	                     log's owner goroutine               cluster's owner goroutine
//	log ──▶ Core ──▶ Keeper, Cluster, Host, Trail
//	          │ ├──▶ SessionIndex: Note, Publish ───────▶ Core.Facts ──▶ voters.Facts, the keeper
//	          │ ├──▶ Questions: answers, watches
//	          │ ├──▶ View: for any goroutine
//	          └────▶ lockfsm.Machine                      Change: the log's configuration
//
// # Guarantees
//
//   - Settings are adopted only while all instances that stay name them. A version of the rules is
//     raised only while every instance and every replica knows it.
//   - A record counts in that, and may bring a vote, only as far as the connection of its opener
//     has authenticated it ([Proof.Vouch]).
//   - A pass of the voter reconciler sees every session of the last publication, and is requested
//     when there is news. Its cost grows with the instances that may vote and with what has
//     changed, not with the number of sessions.
//   - An answer is never older than its question, and never from another lead.
//
// # Concurrency
//
// A [SessionIndex] is shared by two goroutines, [Questions] by askers and the log's owner, and a
// [View] by that owner and all others, as their methods state. Everything else is pure or owned by
// its caller. Nothing reads a clock.
//
// # Failure
//
// An unreadable record agrees to nothing and names no instance. A lost proposal is repeated after a
// second. A question whose leader is gone fails with [ErrNoLead]; its asker tries the next leader.
//
// # Limits
//
// A leader works on 64 questions and 1,024 watches at a time.
package replica
