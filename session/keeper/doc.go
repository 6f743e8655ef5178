// Package keeper is the leader's end of all sessions. One keeper runs on every voter; those that do
// not lead redirect.
//
// [Core] decides everything, as a plain value in memory; [Keeper], in keeper.go and no other file,
// is the thin shell that owns the clock and the goroutine. A keeper admits the commands of clients,
// passes them to the log unread, turns the results of applied commands into replies, acknowledges
// renewals when a quorum has confirmed that it leads, and decides which sessions are over. The
// trust window, which is the promise of the lease, is in the comment of package session.
//
// # Guarantees
//
//   - An expiry is proposed in the term in which it was decided or never, and never over a renewal
//     that has arrived. No client's command is proposed in another term than that of its arrival.
//
//   - Whatever a peer sends, no other peer's attachment suffers, and only commands that clients may
//     send reach the log.
//
//   - A session's record is checked when its Open arrives ([Core].Vouch): the instance and the
//     address in it are those of the connection, or none.
//
//   - A peer that is no full instance gets only locks whose keys its certificate grants, each key
//     of each request, and its sessions belong to that capability: they cannot be attached under
//     another.
//
//   - A turn does a bounded amount of work for sessions: a lead begins, and sessions whose
//     deadlines come together are looked at, 4,096 in a turn. No answer shows how far the steps
//     are: what names a session enters it, the TTL that a new leader gives counts from the
//     beginning of its lead, and an Open waits until all sessions are entered.
//
// # Concurrency
//
// Keeper is safe for concurrent use; Core is not. One goroutine owns the core. All others append to
// an inbox and wake it. A turn takes the whole inbox, and makes at most one proposal, one quorum
// round and one frame for each peer (a few, if there is very much to say). No lock is held while
// waiting. The goroutine calls the functions of the configuration, which may call back.
//
// # Failure
//
// A keeper that cannot hand on one command or one reply of an attachment ends the attachment, and
// repeats that until the peer takes it. A keeper that is held up (a turn 300 ms or more after the
// one before, while it looks at the deadlines every 100 ms) adds the gap to every deadline, because
// renewals may have been waiting where it did not look. It looks that often only in the last second
// before a deadline; before that it may sleep, and what arrived during a stall is read in that
// second.
//
// # Limits
//
// A keeper takes 1,024 attachments, 256 living sessions and 8 MiB of waiting commands from one
// peer, 32 MiB from all, and remembers 4,096 peers that asked for a leader. Of the renewals of one
// attachment it keeps the newest, and of what a session has been told and has not named yet the
// newest 8. Of what arrives during one turn it reads 8 MiB of a peer and 64 MiB in all.
//
// # Refused alternatives
//
// Driving the core on the goroutine of the log was measured: in memory with 1,024 callers it was 10
// to 30 % slower, since two processors no longer work at the same time.
//
// A mutex around the core, with no goroutine, inbox or copies, was measured too: each frame is then
// a turn of its own. In twelve pairs of runs, in memory, a lock and its release took 5 % more
// processor time from one caller on the leader, 3 % from one on a follower, 13 % from 64 callers
// and 5 % from 1,024, and 6 % less where 64 callers waited for one lock.
package keeper
