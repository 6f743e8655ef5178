// Package replica connects the log, the state machine, the keeper and the cluster of a voter. It
// applies log entries, keeps an index of the sessions, and collects the facts about the voters. It
// compares the settings and rules of all instances, and answers questions about locks on the
// leader. internal/instance and the simulation run the same code.
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
//   - The leader adopts settings only while all instances that stay have them. It raises the
//     version of the rules only while every instance and every replica supports the new version.
//   - For these decisions, and for giving votes, a claim in a session's record counts only if it
//     was authenticated by the connection on which the session was opened ([Proof.Vouch]).
//   - A pass of the voter reconciler uses all sessions that were published before it. The cost of
//     a pass grows with the instances that may vote and with the changes, not with the number of
//     sessions.
//   - An answer is never older than its question. A question is answered only in the term in
//     which the leader accepted it.
//
// # Concurrency
//
// Two goroutines share a [SessionIndex]. The goroutines that ask and the log's owner share
// [Questions]. The log's owner writes a [View], and all goroutines may read it. Everything else is
// pure or owned by its caller. The package reads no clock.
//
// # Failure
//
// An unreadable record prevents agreement and identifies no instance. The leader repeats a lost
// proposal after a second. If the replica stops leading, a question fails with [ErrNoLead], and its
// asker tries the next leader.
//
// # Limits
//
// A leader handles 128 questions and 4,096 watches at a time.
package replica
