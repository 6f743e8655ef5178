// Package guest lets a program use a cluster without being one of its instances. The program is
// called a guest. A guest dials instances and is never dialed. It never votes, founds or gossips.
//
// # Questions and locks
//
// A [Guest] sends questions to the service Admin of one reachable instance, or of all instances
// ([Guest.Survey]). A question that needs no leader is answered even if the group has no leader. A
// [Session] takes locks. Like an instance it uses a client.Client, but with a port that only dials.
// It asks an instance for the group and the voters, and then communicates with the voters.
//
// # Why not a whole node
//
// A node that runs for seconds disturbs a cluster. If Replicas is set, the node is one instance
// too many, and could help to found a second group. If a voter has just left, the node may become
// a voter in its place, but the node stops soon afterwards. A change of a setting would need the
// agreement of the node. The leader never makes a guest a voter, and ignores the settings of a
// guest except the TTL. A guest costs one session, one log entry at its beginning and one at its
// end.
//
// # Guarantees
//
// The guarantees are those of package session: a holder learns that its lock is lost before another
// session is granted the lock, and a call that returns an error holds nothing. If another group
// replaces the guest's group, the guest begins a new session in the other group, and its locks are
// lost.
//
// # Security
//
// The security is that of the cluster: the root secret, a secret derived from it, or certificates,
// over mutual TLS 1.3. If a derived secret does not grant an operation, the operation fails with
// mortise.ErrNotAllowed. Without TLS, only loopback addresses are dialed unless Config.Insecure is
// set.
//
// # Concurrency
//
// All exported functions and methods are safe for concurrent use. A Session has one goroutine that
// keeps the list of voters current, and the goroutine of its client. Close waits for both.
//
// # Failure
//
// If an instance does not answer, the report of a survey contains the reason. A session continues
// across changes of the leader and of the voters as long as one voter or one address of Join
// answers.
//
// # Limits
//
// At most 64 questions are asked at a time, each for at most one second. A survey asks at most 128
// addresses.
//
// # Refused alternative
//
// Config could have a field for nodes that never vote. But a wrong value would change the number of
// instances that can vote, and a wrong number can violate mutual exclusion.
package guest
