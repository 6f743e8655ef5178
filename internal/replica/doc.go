// Package replica is what a voter decides between its log, its state machine, the keeper of the
// sessions and its cluster: what follows from each entry, who has a session, what the voters look
// like, which settings and rules all instances agree on, and what a leader answers about the locks.
// internal/instance and the simulation run the same code.
//
//	                     log's owner goroutine                    cluster's owner goroutine
//	log ──▶ Core ──▶ Keeper, Cluster, Host, Trail
//	          │ ├──▶ Registry: Note, Publish ────────────────▶ Core.Facts ──▶ voters.Facts, and the keeper
//	          │ ├──▶ Questions: answers, watches
//	          │ ├──▶ View: for any goroutine
//	          └────▶ lockfsm.Machine                           Change: the log's configuration
//
// # Guarantees
//
//   - Settings are adopted only while all instances that stay name them, and a version of the rules
//     only while every instance and every replica knows it.
//   - A record has a word in that, and may bring a vote, only as far as the connection of its
//     opener has proved who it is ([Proof.Vouch]).
//   - A look at the voters sees every session of the last publication, and is called for when there
//     is news. Its cost grows with the instances that may vote and with what has changed, not with
//     the sessions.
//   - An answer is never older than its question, and is never that of another lead.
//
// # Concurrency
//
// A [Registry] is between two goroutines, [Questions] between askers and the log's owner, and a
// [View] between that owner and all others, as their methods say. All else is pure or is owned by
// its caller. No clock is read.
//
// # Failure
//
// A record that cannot be read agrees to nothing and names no instance. A wish that is lost is
// asked for again after a second. A question whose leader is gone is answered with [ErrNoLead]; its
// asker turns to the next.
//
// # Limits
//
// A leader works on 64 questions at a time, and 1,024 watches.
package replica
