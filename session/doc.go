// Package session holds what the two ends of a lease share: the words that they exchange, and the
// rules of the lease that bind both.
//
// Package client is the end of an instance. It opens one session, keeps it alive by renewals, asks
// for locks in it, and tells its callers when a lock can no longer be trusted. Package keeper is
// the end of the leader. It passes the commands of clients to the log, passes the results back, and
// ends sessions whose clients have fallen silent. What the commands mean is decided by lockfsm
// alone.
//
// A client sends commands, encoded by lockfsm, and beside them each [Renewal]. A keeper answers
// with a [Reply] for each thing that it has to say. [Sent] is how either end remembers when it sent
// what is not acknowledged yet.
//
// # The trust window
//
//	             sent   arrives      acknowledged                  jeopardy         deadline      keeper may expire
//	client  ------|--------------------|------------------------------|----------------|-----------------|----->
//	              |<---- 2/3 TTL ------------------------------------>|                |                 |
//	              |<---- TTL - TTL/50 -------------------------------------------------+                 |
//	keeper  ---------------|---------|---------------------------------------------------------------- ->|
//	                    round of  renewed |<---- TTL --------------------------------------------------->|
//	                    a quorum
//
// The client's deadline is the time at which it sent the last acknowledged renewal, plus the TTL,
// less a margin of TTL/50. It does not matter how long the answer took. The answer to Open counts
// from the first sending of its nonce. The keeper's deadline is a TTL after the acknowledgement,
// which is later than the sending. So the holder's window ends first as long as two clocks differ
// in rate by at most 2%, and no two clocks are ever compared. A renewal is acknowledged only if all
// of this holds: after its arrival a quorum has confirmed that this keeper leads, everything
// committed by then is applied, and the session is there, at the epoch of this attachment, and not
// marked to expire. A new leader gives every session its full TTL.
//
// A client that is heard and hears nothing, cut off in one direction, must not be kept alive by its
// renewals: it could be granted a lock, never know, and keep it. So each renewal names the newest
// answer of the keeper that the client has heard, an acknowledgement or the Attached of an
// attachment. The renewal counts only if that answer was sent less than a TTL ago by the keeper's
// clock; otherwise it is not acknowledged, and the deadline runs. So the session is over two TTLs
// after its client went deaf. This is kept with the session and not with the attachment, because a
// deaf client attaches again and again. A client whose lease still runs has heard something that
// was sent less than a TTL ago.
//
// At the deadline every held lock is lost, for ever, also if the session turns out to live on.
//
// # Guarantees
//
//   - A holder learns that its lock is lost before another caller can be granted it.
//   - A session belongs to the instance that opened it, by the ID that its connection has proved,
//     and to the capability of its certificate. The leader writes both into the log with Open.
//     Attach, renewals and commands from any other instance are refused, whatever it knows. The
//     nonce makes Open idempotent and proves nothing: every voter has it, and so has every
//     snapshot.
//   - The bytes are a protocol between builds: kinds and reasons keep their numbers, a client skips
//     records of a kind that it does not know, and fields may be added behind those that are known.
//
// What these rest on is the transport, which proves the ID at both ends of every connection, and
// the voters. A voter that lies can confirm leases that it does not keep. No other instance, member
// or guest can, and strangers do not get here.
//
// # Failure
//
// Lost frames, streams that end, leaders that change and duplicates are settled by the next Attach.
// A copied process is found out by the epoch: the later attachment wins, and the other copy is told
// that it is stale and opens a session of its own. A client that reaches a majority of the voters
// but not the leader loses its locks, cleanly.
//
// Where the machine's clock stands still while the machine is suspended (everywhere but on Linux),
// a suspended holder believes in its locks for as long as it slept; tokens protect the resource.
//
// # Concurrency and limits
//
// Everything here is a plain value. Decoders refuse bytes that no build of ours wrote, and fields
// that are longer than the rules allow; what they return may alias the input.
//
// # Refused alternatives
//
// A lease per lock would let a slow lock expire alone, at the price of a renewal per lock and a
// quorum round or log entry for each. A lease in the log (etcd's checkpoints) would spare a new
// leader the full TTL, at the price of a log entry per renewal. Answering renewals by the leader's
// own lease (ReadOnlyLeaseBased) would spare the quorum round, and make safety rest on comparing
// two clocks; a round costs 30 microseconds and serves all sessions at once.
package session
