// Package session holds what the two sides of a lease share: the messages between them, and the
// rules of the lease.
//
// Package client is the side of an instance. It opens one session, keeps it alive by renewals,
// requests locks in it, and reports when a lock can no longer be trusted. Package keeper is the
// side of the leader. It proposes the commands of clients to the log, returns the results, and
// expires sessions whose clients have stopped responding. Package lockfsm alone decides what the
// commands mean.
//
// A client sends commands, encoded by lockfsm, and renewals ([Renewal]). A keeper answers with
// records ([Reply]). Each side records in a [Sent] when it has sent the messages that are not
// acknowledged yet.
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
// less a margin of TTL/50. The time that the answer took does not matter. After Open the lease
// counts from the first sending of the nonce. The keeper's deadline is one TTL after the
// acknowledgement. The acknowledgement comes after the sending, so the holder's deadline comes
// first as long as the rates of the two clocks differ by at most 2%. Times of different clocks are
// never compared.
//
// A renewal is acknowledged only if, after its arrival, a quorum has confirmed that this keeper
// leads, and if every entry that was committed before the confirmation is applied. The session must
// also exist, be at the epoch of this attachment, and not be marked to expire. A new leader gives
// every session its full TTL.
//
// A client that can send but not receive must not be kept alive by its renewals: it could be
// granted a lock, never learn of it, and keep it. So each renewal names the newest answer that has
// reached the client: an acknowledgement, or the Attached of an attachment. The renewal is
// acknowledged only if that answer was sent less than a TTL ago by the keeper's clock. This is
// always true while the client's lease runs. So a session ends two TTLs after its client has
// stopped receiving. The record of answers belongs to the session and not to the attachment,
// because such a client attaches again and again.
//
// At the deadline every held lock is lost for good, even if the session still exists at the leader.
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
// These guarantees depend on the transport, which proves the IDs of both sides of every connection,
// and on the voters. A lying voter can confirm leases that it does not keep. No other member and no
// admin client can do that, and a process without credentials gets no connection.
//
// # Failure
//
// The next Attach repairs lost frames, ended streams, leader changes and duplicates. The epoch
// detects a copied process: the later attachment wins, and the other copy receives Stale and opens
// a session of its own. A client that reaches a majority of the voters but not the leader loses its
// locks, cleanly.
//
// On every system except Linux the clock stops while the machine is suspended. On such a system a
// suspended holder believes in its locks for too long, by the time of the suspension; tokens
// protect the resource.
//
// # Concurrency and limits
//
// Everything here is a plain value. Decoders refuse malformed bytes and oversized fields. Their
// results may alias the input.
//
// # Refused alternatives
//
// A lease per lock would let a slow lock expire alone, but would cost a renewal and a quorum round
// or log entry for each lock. A lease in the log (etcd's checkpoints) would save a new leader the
// full TTL, but would cost a log entry per renewal. Answering renewals by the leader's own lease
// (ReadOnlyLeaseBased) would save the quorum round, but safety would rest on comparing two clocks.
// A round costs 30 microseconds and serves all sessions at once.
package session
