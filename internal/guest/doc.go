// Package guest lets a program use a cluster without being one of its instances: it dials
// instances, is dialed by nobody, and never votes, founds or gossips. cmd/mortise stands on it.
//
// # What it is
//
// A [Guest] asks: any instance that it reaches, by the service Admin, or all of them
// ([Guest.Survey]). That needs no leader where the question needs none. A [Session] takes locks:
// the client.Client of every instance, over a port that only dials. It asks an instance which group
// there is and who votes, and from then on talks to the voters as a plain member does.
//
// # Why not a whole node
//
// A node that lives for seconds disturbs a cluster. With Replicas it is one instance more than were
// promised, and a second group could be founded with its help; it is given a replica when a voter
// has just gone, and is gone itself then; its comings and goings are gossiped, and its settings
// count when all have to agree. A guest's record says that it is one: the leader counts it neither
// among those who could vote nor among those who have to agree, and it is a session like all others
// to everything else. What it costs is one session, one log entry at its beginning and one at its
// end.
//
// # Guarantees
//
// Those of package session: a holder learns that its lock is lost before anybody else is granted
// it, and a call that returns an error holds nothing. A guest whose group has given way to another
// one begins a new session there; what it held is lost then.
//
// # Security
//
// That of the cluster: the root secret, one derived from it or certificates, mutual TLS 1.3. A
// process without them is refused at the handshake. What a derived secret does not grant fails with
// mortise.ErrNotAllowed. Without TLS, an address that is no loopback address is not dialed unless
// Config.Insecure says so.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. A Session has one goroutine that follows who
// votes, and that of its client; Close waits for both.
//
// # Failure
//
// An instance that does not answer is one entry of a survey, with the reason. A session goes on
// over changes of leader and of voters as long as one voter or one address of Join answers.
//
// # Limits
//
// 64 questions at a time, a second each. A survey asks at most 1,024 addresses.
//
// # Refused alternative
//
// A field of Config for nodes that never vote: it would be one more way for an instance to be
// configured wrongly, in a place where a wrong count of instances costs exclusion.
package guest
