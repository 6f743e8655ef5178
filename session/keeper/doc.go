// Package keeper is the leader's side of the session protocol. Every voter runs one keeper. A
// keeper on a follower redirects clients to the leader.
//
// [Core] makes all decisions. [Keeper], in keeper.go, is the shell with the clock and the
// goroutine. A keeper checks the headers of clients' commands and passes them to the log. It turns
// the results into replies, acknowledges renewals when a quorum has confirmed that it leads, and
// decides which sessions expire. Package session explains the trust window of the lease.
//
// # Guarantees
//
//   - An expiry is proposed only in the term in which it was decided. It is not decided while a
//     renewal of the session has arrived and is not confirmed. A client's command is proposed only
//     in the term in which it arrived.
//   - No message of a peer ends another peer's attachment, and only commands that clients may send
//     reach the log.
//   - The record of a session is checked when its Open arrives ([Core].Vouch): its instance and its
//     address are those of the connection, or empty.
//   - A peer that is not a full instance gets a lock only if its certificate grants every key of
//     the request. Its sessions belong to that capability.
//   - A turn of a new leader adds at most 4,096 sessions to its table, and a turn checks at most
//     4,096 deadlines. Replies do not depend on how many sessions are added; see entering.go.
//
// # Concurrency
//
// Keeper is safe for concurrent use; Core is not. One goroutine owns the core. Other goroutines
// append to an inbox and wake it. A turn processes the whole inbox, and makes at most one proposal,
// one quorum round and one frame for each peer (a few frames if there are very many replies). No
// mutex is held while waiting. The goroutine calls the functions of the configuration, which may
// call methods of the Keeper.
//
// # Failure
//
// A keeper that cannot deliver a command or a reply of an attachment ends the attachment. It
// informs the client, and repeats this message until the transport accepts it.
//
// In the last second before a deadline a keeper checks the deadlines every 100 ms. If, in this
// second, a turn begins 300 ms or more after the previous turn, the keeper was stalled. It adds
// this time to every deadline, because renewals that have arrived may not have been read. A stall
// before the last second needs no such correction, because the keeper then reads the renewals in
// the last second.
//
// # Limits
//
// A keeper accepts 1,024 attachments, 256 sessions and 8 MiB of waiting commands from one peer, and
// 32 MiB of waiting commands from all peers. It keeps a list of up to 4,096 peers that asked for a
// leader. It keeps the newest renewal of each attachment, and the newest 8 unconfirmed answers of
// each session. In one turn it reads at most 8 MiB from a peer and 64 MiB from all peers.
//
// # Refused alternatives
//
// The core could run on the log's goroutine. Measured in memory with 1,024 callers, this was 10 to
// 30 % slower, since log and keeper do not run in parallel in this case.
//
// A mutex could protect the core, without a goroutine, an inbox and copies. Each frame would be a
// separate turn. In twelve pairs of runs in memory, a lock and its release took 5 % more processor
// time with one caller on the leader, 3 % more with one caller on a follower, 13 % more with 64
// callers, and 5 % more with 1,024 callers. They took 6 % less with 64 callers that waited for one
// lock.
package keeper
