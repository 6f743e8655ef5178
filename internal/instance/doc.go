// Package instance is one running instance of a group: the port, the three owners behind it and
// their shared state. The root, package mortise, is its public API: it validates arguments, calls
// an [Instance], and translates the results. Package instance implements no rules: it starts
// client, replica, cluster and port, connects them, and stops them.
//
//	client    the instance's own session and its user's    package session/client
//	replica   log, rules and keeper; not on members        ownReplica, over internal/replica,
//	                                                       raftlog, session/keeper
//	cluster   membership, founding of the group, votes     package cluster, with life as its Host
//	port      one listener: links, queries, gossip         package transport, with inbound as its
//	                                                       Handler; services of package queries
//
// Read instance.go first: it has the state and the start. wiring.go connects the packages. life.go
// and voting.go carry out the decisions of package cluster. replica.go is the voter, leave.go the
// end.
//
// # Guarantees
//
// After Close has returned nothing that Start began is still running, unless the disk does not
// answer. An instance tells others nothing that depends on a write to the directory before that is
// durable. A failure of the replica ends the vote and not the process.
//
// # Concurrency
//
// All methods of an Instance are safe for concurrent use. The packages above call it on their own
// goroutines, and none of these calls waits for another of them. No mutex is held across a wait.
//
// # Limits
//
// The memory that other processes can make an instance use is bounded in transport, in lockfsm's
// budgets, and here: 64 disk reports, 64 names of voters, one page of members. A user may have 128
// sessions of its own.
//
// # Refused alternatives
//
// All of this in mortise.Node: a reader of Lock would have to read past a raft log. The types of
// the root defined here, with aliases in the root: pkg.go.dev shows no fields of an alias.
package instance
