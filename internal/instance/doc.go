// Package instance implements one running instance of a group: its client, replica, cluster and
// port, and their shared state. Package mortise is its public API. Package instance starts these
// four components, connects them, and stops them. The rules of locks, log and membership are in
// other packages.
//
//	client    the instance's session, the user's sessions  package session/client
//	replica   log, state machine, keeper; not on members   ownReplica, over internal/replica,
//	                                                       raftlog, session/keeper
//	cluster   membership, founding of the group, votes     package cluster, with life as its Host
//	port      one listener: links, queries, gossip         package transport, with inbound as its
//	                                                       Handler; services of package queries
//
// Read instance.go first: it contains the state. start.go starts the instance, and connects the
// packages. inbound.go and outbound.go pass frames and calls between the port and the packages.
// life.go executes the decisions of package cluster.
//
// # Guarantees
//
// When Close has returned, all goroutines of the instance have ended, except for calls to a disk
// that does not answer. A message that depends on a write to the directory is sent only when the
// write is durable. A failure of the replica ends the vote, not the process.
//
// # Concurrency
//
// All methods of an Instance are safe for concurrent use. The packages that the Instance connects
// call it on their own goroutines. No such call waits for another. No mutex is held across a wait.
//
// # Limits
//
// This package stores at most 64 disk reports, 64 names of voters, and one page of members. Besides
// the instance's own session, users may open 128 sessions in it.
//
// # Refused alternatives
//
// The code could be part of mortise.Node, but readers of Lock would have to skip it. The public
// types could be defined here, with aliases in package mortise, but pkg.go.dev does not show the
// fields of an alias.
package instance
