// Package replica connects the log, the state machine, the keeper and the cluster of a voter. It
// decides what follows from each log entry, and keeps an index of the sessions. It collects the
// facts about the voters, compares the settings and rules of all instances, and answers questions
// about the locks on the leader. internal/instance and the simulation run the same code.
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
//   - Settings are adopted only while all instances that stay have these settings. The version of
//     the rules is raised only while every instance and every replica supports the new version.
//   - For both decisions, and for giving votes, only those claims of a record count that were
//     authenticated on the connection of the session's opener ([Proof.Vouch]).
//   - A pass of the voter reconciler uses all sessions that were published before it. A publication
//     of changes requests a pass. The cost of a pass grows with the instances that may vote and
//     with the changes, not with the number of sessions.
//   - An answer is never older than its question, and never from another term as leader.
//
// # Concurrency
//
// Two goroutines share a [SessionIndex]. The goroutines that ask and the log's owner share
// [Questions]. The log's owner writes a [View], and all goroutines may read it. Everything else is
// pure or owned by its caller. The package reads no clock.
//
// # Failure
//
// An unreadable record prevents agreement and identifies no instance. A lost proposal is repeated
// after a second. If the replica stops leading, a question fails with [ErrNoLead], and its asker
// tries the next leader.
//
// # Limits
//
// A leader handles 64 questions and 1,024 watches at a time.
package replica
