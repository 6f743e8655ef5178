// Package keeper is the leader's side of the session protocol. Every voter runs one keeper. A
// keeper on a follower redirects clients to the leader.
//
// [Core] makes all decisions. [Keeper] is the shell with the clock and the goroutine. A keeper
// passes clients' commands to the log and turns the results into replies. It acknowledges renewals
// when a quorum has confirmed its leadership, and decides which sessions expire. Package session
// explains the trust window of the lease.
//
// # Guarantees
//
//   - An expiry is proposed only in the term in which it was decided. A session does not expire
//     while one of its renewals waits for confirmation. A client's command is proposed only in
//     the term in which it arrived.
//   - A session ends before its TTL has passed only if an operator ends it, or if its instance has
//     ended, as an attached session proves: one of a later start of the same instance, or of an
//     instance that shows the signature of the one that has ended.
//   - No message of a peer ends another peer's attachment, and only commands that clients may send
//     reach the log.
//   - [Core].Vouch checks the record of a session when its Open arrives. The record's instance and
//     address must be those of the connection, or empty.
//   - A session has the rights that were proved on the connection of its Open: the keeper writes
//     them into the Open. It is used only on connections with the same rights.
//   - A turn adds at most 4,096 sessions to the table of a new leader, and checks at most 4,096
//     deadlines.
//
// # Concurrency
//
// Keeper is safe for concurrent use; Core is not. One goroutine owns the core. Other goroutines
// append to an inbox and wake the owner. A turn processes the whole inbox. It makes at most one
// proposal, one quorum round, and usually one frame for each peer. No mutex is held while waiting.
//
// # Failure
//
// If a keeper cannot deliver a command or a reply of an attachment, it ends the attachment. It
// informs the client, and repeats this message until the transport accepts it.
//
// In the last second before a deadline, a keeper checks the deadlines every 100 ms. If two turns in
// this second are 300 ms or more apart, the keeper was stalled. It then adds the duration of the
// stall to every deadline, because it may not have read renewals that have arrived.
//
// # Limits
//
// A keeper accepts 1,024 attachments, 256 sessions and 8 MiB of waiting commands from one peer, and
// 32 MiB of waiting commands from all peers; each run of commands of one session in a frame counts
// 128 bytes more. It remembers up to 4,096 peers that asked for a
// leader. It keeps the newest renewal of each attachment, and the newest 8 unconfirmed answers of
// each session. In one turn it reads at most 8 MiB from a peer and 64 MiB from all peers.
//
// # Refused alternatives
//
// The core could run on the log's goroutine, but that was 10 to 30 % slower with 1,024 callers. A
// mutex could protect the core, without a goroutine and an inbox. But each frame would then be a
// separate turn, and most loads took 3 to 13 % more processor time.
package keeper
