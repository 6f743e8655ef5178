// Package instance is one running instance of a group: the port, the three owners behind it and
// what they share. The root, package mortise, is the face of it: it checks what a caller asks for,
// calls an [Instance], and puts what comes back into words. It decides no rule either: it starts
// the rooms, carries what each of them says to the others, and ends them.
//
//	client    the instance's own session and those of its user        package session
//	replica   log, rules and keeper, on voters and learners only      ownReplica here, over internal/replica, raftlog, session
//	cluster   who is here, the founding of a group, who votes         package cluster, with life here as its Host
//	port      one listener: links, questions, gossip                  package transport, with inbound here as its Handler,
//	                                                                  and the services of package queries
//
// Read instance.go first: what there is, and the start. wiring.go is what arrives and what leaves;
// life.go and voting.go carry out what the cluster room has decided; replica.go is the voter;
// leave.go is the end. Beside them stand what an instance keeps (directory.go), how its disk does
// (disk.go, diskreport.go), what it knows without asking (picture.go, learn.go), who leads
// (leader.go), what hooks are told (hooknode.go) and the address at which others reach it
// (advertise.go).
//
// # Guarantees
//
// After Close has returned nothing runs any more that Start has begun, unless the disk does not
// answer. Nothing is said to others that the directory would have to hold and does not. A failure
// of the replica costs the vote and not the process.
//
// # Concurrency
//
// All methods of an Instance are safe for concurrent use. The rooms call it on their own
// goroutines, and none of these calls waits for another room; a field says who owns it where that
// is not plain. No mutex is held across a wait.
//
// # Failure
//
// Errors are those of the rooms, those of this package's file errors.go, and those of ctx.
// [Instance.Err] says that the instance has ended, and why.
//
// # Limits
//
// What other processes can make an instance keep is bounded in transport, in lockfsm's budgets, and
// here: 64 reports of disks, 64 names of voters, one page of members, 128 sessions of the user's
// own.
//
// # Refused alternatives
//
// All of this as fields of mortise.Node, as it once was: a reader of Lock had to read past a raft
// log. The types of the root in this package, by aliases: pkg.go.dev shows no fields of an alias,
// so the root has its own and translates.
package instance
