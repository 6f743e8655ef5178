// Package session holds what the two ends of a lease share: their messages, and the rules of the
// lease.
//
// Package client is the end on an instance. It opens one session, keeps it alive by renewals,
// requests locks in it, and reports when a lock can no longer be trusted. Package keeper is the end
// on the leader. It proposes the commands of clients to the log, returns the results, and expires
// sessions whose clients have stopped responding. Package lockfsm alone decides what the commands
// mean.
//
// A client sends commands, encoded by lockfsm, and renewals ([Renewal]). A keeper answers with
// records ([Reply]). Either end keeps in a [Sent] when it sent its unacknowledged messages.
//
// # The trust window
//
//	             sent   arrives   acknowledged          jeopardy       deadline  keeper may expire
//	client  ------|----------------|------------------------|--------------|--------------|----->
//	              |<---- 2/3 TTL -------------------------->|              |              |
//	              |<---- TTL - TTL/50 ------------------------------------>|              |
//	keeper  -------------|------|---------------------------------------------------------|----->
//	               round of     |<---- TTL ---------------------------------------------->|
//	               a quorum  renewed
//
// The client's deadline is the time at which it sent the last acknowledged renewal, plus the TTL,
// less a margin of TTL/50. How long the answer took does not matter. After Open the lease counts
// from the first sending of the nonce. The keeper's deadline is a TTL after the acknowledgement,
// which is later. So the holder's window ends first as long as the two clocks differ in rate by at
// most 2%. Readings of two clocks are never compared.
//
// A renewal is acknowledged only if, after its arrival, a quorum has confirmed that this keeper
// leads and everything committed by then is applied. The session must also exist, be at the epoch
// of this attachment, and not be marked to expire. A new leader gives every session its full TTL.
//
// A client that can send but not receive must not be kept alive by its renewals: it could be
// granted a lock, never learn of it, and keep it. So each renewal names the newest answer that has
// reached the client: an acknowledgement, or the Attached of an attachment. The renewal is
// acknowledged only if that answer was sent less than a TTL ago by the keeper's clock, which is
// always so while the client's lease runs. So a session is over two TTLs after its client stopped
// receiving. The record belongs to the session, because such a client attaches again and again.
//
// At the deadline every held lock is lost for good, even if the session turns out to live on.
//
// # Guarantees
//
//   - A holder learns that its lock is lost before another caller can be granted it.
//   - A session belongs to the instance that opened it, by the ID that its connection has proved,
//     and to the capability of its certificate. The leader writes both into the log with Open, and
//     refuses Attach, renewals and commands from any other instance. The nonce makes Open
//     idempotent and proves nothing: every voter and every snapshot contains it.
//   - The bytes are a protocol between builds. Kinds and reasons keep their numbers, a client skips
//     records of an unknown kind, and fields may be added after the known ones.
//
// These guarantees rest on the transport, which proves the ID at both ends of every connection, and
// on the voters. A lying voter can confirm leases that it does not keep. No other member and no
// admin client can, and a connection without credentials does not get this far.
//
// # Failure
//
// The next Attach repairs lost frames, ended streams, leader changes and duplicates. The epoch
// detects a copied process: the later attachment wins, and the other copy receives Stale and opens
// a session of its own. A client that reaches a majority of the voters but not the leader loses its
// locks, cleanly.
//
// On every system but Linux the clock stands still while the machine is suspended. There a
// suspended holder takes its locks for held longer, by the time it slept; tokens protect the
// resource.
//
// # Concurrency and limits
//
// Everything here is a plain value. Decoders refuse malformed bytes and oversized fields. What they
// return may alias the input.
//
// # Refused alternatives
//
// A lease per lock would let a slow lock expire alone, but would cost a renewal and a quorum round
// or log entry for each lock. A lease in the log (etcd's checkpoints) would save a new leader the
// full TTL, but would cost a log entry per renewal. Answering renewals by the leader's own lease
// (ReadOnlyLeaseBased) would save the quorum round, but safety would rest on comparing two clocks.
// A round costs 30 microseconds and serves all sessions at once.
package session
