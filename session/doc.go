// Package session defines the messages between the two sides of a lease, and the rules of the
// lease.
//
// Package client is the side of an instance. A client opens one session, renews its lease, requests
// locks in it, and reports when a lock is lost. Package keeper is the side of the leader. The
// keeper proposes the commands of clients to the log, returns the results, and expires silent
// sessions. Package lockfsm executes the commands.
//
// A client sends commands, encoded by lockfsm, and renewals ([Renewal]). A keeper answers with
// records ([Reply]).
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
// The client's deadline is the sending time of the last acknowledged renewal, plus the TTL, minus a
// margin of TTL/50. After Open, the first sending of the nonce counts as the renewal. The keeper's
// deadline is one TTL after it sent the acknowledgement. So the client's deadline passes first as
// long as the rates of the two clocks differ by at most 2%. The times of two clocks are never
// compared.
//
// The keeper acknowledges a renewal only if, after its arrival, a quorum has confirmed that this
// keeper leads, and the keeper has applied every entry that was committed before the confirmation.
// The session must also exist, be at the epoch of this attachment, and not be marked to expire. A
// new leader gives every session its full TTL. The round of a renewal that came with an Attach
// begins when the Attach is proposed, and the keeper acknowledges the renewal once the Attach is
// applied, usually in the same frame.
//
// The renewals of a client that can send but not receive must not keep its session alive. Such a
// client could be granted a lock and never receive the grant. So each renewal names the newest
// answer that the client has received: an acknowledgement, or the Attached of an attachment. The
// keeper acknowledges the renewal only if it sent that answer less than a TTL ago. This is always
// true while the client's lease runs. So a session expires at most two TTLs after its client has
// stopped receiving. The keeper records sent answers for each session and not for each attachment,
// because such a client attaches again repeatedly.
//
// At the client's deadline every held lock is lost for good, even if the session has not expired.
//
// # Guarantees
//
//   - A client reports the loss of a lock before the lock is granted to another caller.
//   - A session belongs to the instance that opened it, and to the capability of that instance's
//     certificate. The connection has authenticated that instance. The leader writes both into the
//     log with Open, and refuses Attach, renewals and commands from any other instance. The nonce
//     only makes Open idempotent.
//   - The encoding is stable between builds. Kinds and reasons keep their numbers, a client skips
//     records of an unknown kind, and fields may be added after the known ones.
//
// These guarantees depend on the transport, which authenticates both ends of every connection, and
// on correct voters. A faulty voter can acknowledge leases and then expire them early.
//
// # Failure
//
// The next Attach repairs lost frames, ended streams, leader changes and duplicates. If a process
// was copied, the later attachment is accepted, and the other copy receives Stale and opens its own
// session. A client that cannot reach the leader loses its locks at its deadline.
//
// On systems other than Linux, macOS and Windows the clock may stop while the machine is suspended.
// After a suspension, a holder on such a system reports the loss of its locks too late. The delay
// is as long as the suspension. Only tokens protect the resource in this case.
//
// # Concurrency and limits
//
// All types are plain values. Decoders refuse malformed bytes and oversized fields. Their results
// may alias the input.
//
// # Refused alternatives
//
// A lease for each lock would cost a renewal and a quorum round for each lock. With leases in the
// log, a new leader would not have to give every session its full TTL, but each renewal would
// cost a log entry. Acknowledgement under the leader's own lease (ReadOnlyLeaseBased) would save
// the quorum round, but safety would depend on the comparison of two clocks.
package session
