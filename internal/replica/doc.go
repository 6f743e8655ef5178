// Package replica has the decisions of a voter between its log, its state machine, the keeper and
// its cluster: the consequences of each entry, the existing sessions, the facts about the voters,
// the settings and rules on which all instances agree, and a leader's answers about the locks.
// internal/instance and the simulation run the same code.
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
//   - Settings are adopted only while all instances that stay have them. A version of the rules is
//     raised only while every instance and every replica supports it.
//   - For this, and for giving a vote to its instance, a record counts only as far as the
//     connection of its opener has authenticated it ([Proof.Vouch]).
//   - A pass of the voter reconciler uses every session of the last publication. A publication of
//     changes requests a pass. The cost of a pass grows with the instances that may vote and with
//     the changes, not with the number of sessions.
//   - An answer is never older than its question, and never from another term as leader.
//
// # Concurrency
//
// Two goroutines share a [SessionIndex]. Askers and the log's owner share [Questions]. The log's
// owner writes a [View], and all goroutines may read it. Everything else is pure or owned by its
// caller. The package reads no clock.
//
// # Failure
//
// An unreadable record prevents agreement and identifies no instance. A proposal that was lost is
// repeated after a second. If the replica stops leading, a question fails with [ErrNoLead], and its
// asker tries the next leader.
//
// # Limits
//
// A leader handles 64 questions and 1,024 watches at a time.
package replica
