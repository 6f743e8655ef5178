// Package keeper is the leader's side of all sessions. Every voter runs one keeper; the keepers of
// followers redirect clients to the leader.
//
// [Core] makes all decisions and is a plain value in memory. [Keeper] is the shell around it, with
// the clock and the goroutine; it is in keeper.go and no other file. A keeper checks the headers of
// clients' commands and passes them to the log. It turns the results into replies, acknowledges
// renewals when a quorum has confirmed that it leads, and decides which sessions have expired. The
// comment of package session explains the trust window, which is the promise of the lease.
//
// # Guarantees
//
//   - An expiry is proposed in the term in which it was decided or never, and never if a renewal
//     has arrived. A client's command is proposed only in the term in which it arrived.
//   - Nothing that a peer sends ends another peer's attachment, and only commands that clients may
//     send reach the log.
//   - A session's record is checked when its Open arrives ([Core].Vouch): the instance and the
//     address in it are those of the connection, or empty.
//   - A peer that is not a full instance gets a lock only if its certificate grants every key of
//     the request. Its sessions belong to that capability.
//   - A turn enters at most 4,096 sessions at the beginning of a lead, and checks at most 4,096
//     deadlines. No answer depends on the progress: naming a session enters it, the TTL from a new
//     leader counts from the beginning of its lead, and an Open waits until all sessions are
//     entered.
//
// # Concurrency
//
// Keeper is safe for concurrent use; Core is not. One goroutine owns the core. All others append to
// an inbox and wake it. A turn takes the whole inbox, and makes at most one proposal, one quorum
// round and one frame for each peer (a few if there are very many replies). No mutex is held while
// waiting. The goroutine calls the functions of the configuration, which may call back.
//
// # Failure
//
// A keeper that cannot pass on a command or a reply of an attachment ends the attachment. It
// reports the end to the client again and again until the transport accepts the report.
//
// In the last second before a deadline a keeper checks the deadlines every 100 ms. If a turn then
// comes 300 ms or more after the one before, the keeper was stalled. It adds the gap to every
// deadline, because renewals may have arrived in that time and not been read. Before the last
// second the keeper may sleep: renewals that arrive during a stall are then read in the last
// second.
//
// # Limits
//
// A keeper accepts 1,024 attachments, 256 live sessions and 8 MiB of waiting commands from one
// peer, and 32 MiB of waiting commands from all. It remembers 4,096 peers that asked for a leader.
// It keeps the newest renewal of each attachment, and the newest 8 unconfirmed answers of each
// session. In one turn it reads at most 8 MiB from a peer and 64 MiB in all.
//
// # Refused alternatives
//
// Running the core on the goroutine of the log. In memory with 1,024 callers this was 10 to 30 %
// slower, because the two goroutines no longer use two processors.
//
// A mutex around the core instead of a goroutine with an inbox. Each frame is then a turn of its
// own. In twelve pairs of runs, in memory, a lock and its release took 5 % more processor time with
// one caller on the leader, 3 % more with one on a follower, 13 % more with 64 callers and 5 % more
// with 1,024. It took 6 % less where 64 callers waited for one lock.
package keeper
