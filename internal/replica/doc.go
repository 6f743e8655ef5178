// Package replica is what a voter decides between its log, its state machine and its cluster, when it leads: who has
// a session, what the voters look like, and which settings and rules all instances agree on. The
// root package and the simulation run the same code.
//
//	log's owner goroutine                      cluster's owner goroutine
//	  results ──▶ Registry.Note, Publish ───▶ Registry.Read ──▶ voters.Facts ──▶ which step
//	                                          Accord.Look   ──▶ Wishes       ──▶ keeper
//	              Facts, Placed, Change: a configuration of the log as the cluster room has it
//
// # Guarantees
//
//   - Settings are adopted only while all instances that stay name them, and a version of the rules
//     only while every instance and every replica knows it.
//   - A record has a word in that, and may bring a vote, only as far as the connection of its opener has proved
//     who it is ([Proof.Vouch]).
//   - Whoever looks sees what every session was at the last publication, and is called to look when there is news.
//   - The cost of a look grows with the instances that may vote and with what has changed, not with
//     the sessions.
//
// # Concurrency
//
// A [Registry] is between two goroutines, as its methods say. All else is pure or is owned by its caller. No clock
// is read.
//
// # Failure
//
// A record that cannot be read agrees to nothing and names no instance. What was asked for and is
// lost is asked for again after a second.
package replica
