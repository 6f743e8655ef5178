// Package guest lets a program use a cluster without being one of its instances. A guest dials
// instances and is never dialed. It never votes, founds or gossips. cmd/mortise uses it.
//
// # What it is
//
// A [Guest] asks questions through the service Admin: one reachable instance, or all of them
// ([Guest.Survey]). If a question needs no leader, the guest needs none. A [Session] takes locks.
// It uses the same client.Client as every instance, over a port that only dials. It asks an
// instance which group there is and which replicas vote. From then on it talks to the voters as a
// plain member does.
//
// # Why not a whole node
//
// A node that lives for seconds disturbs a cluster. With Replicas it is one instance more than
// configured, and could help to found a second group. It is given a replica when a voter has just
// left, and is gone soon after. Its joins and leaves are gossiped, and its settings count in the
// settings agreement. A guest's record marks it as a guest: the leader counts it neither as a
// possible voter nor in the settings agreement. To everything else it is an ordinary session. It
// costs one session, one log entry at its beginning and one at its end.
//
// # Guarantees
//
// Those of package session: a holder learns that its lock is lost before another session is granted
// it, and a call that returns an error holds nothing. If the group of a guest gives way to another
// group, the guest begins a new session there, and what it held is lost.
//
// # Security
//
// That of the cluster: the root secret, a secret derived from it, or certificates, over mutual TLS
// 1.3. A process without them is rejected at the handshake. What a derived secret does not grant
// fails with mortise.ErrNotAllowed. Without TLS, only loopback addresses are dialed unless
// Config.Insecure is set.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. A Session has one goroutine that follows the
// voters, and the goroutine of its client. Close waits for both.
//
// # Failure
//
// An instance that does not answer is one entry of a survey, with the reason. A session continues
// across changes of leader and of voters as long as one voter or one address of Join answers.
//
// # Limits
//
// At most 64 questions at a time, and one second for each. A survey asks at most 128 addresses.
//
// # Refused alternative
//
// A field of Config for nodes that never vote. It would be one more way to misconfigure an
// instance, where a wrong count of instances costs exclusion.
package guest
