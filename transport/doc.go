// Package transport carries bytes between the nodes of one cluster: one TCP port for everything,
// TLS if configured, and gRPC for everything except the links. Links have their own framing,
// because a lock waits for one or two exchanges: one takes 45 microseconds, and took 75 as a call
// of gRPC (BenchmarkFrame). Every connection begins with a proof of the instances at its two ends.
//
// # What it is
//
// A [Port] listens, dials and separates the kinds of traffic on different connections, so that none
// holds up another:
//
//   - Links. Between two nodes one long-lived stream carries renewals, session commands, replies
//     and raft messages, with one [Frame] per turn. Either side dials on demand. Everything that a
//     lock waits for is sent on links. [Port.Spare] keeps links that the next leader will need, so
//     that a change of leader needs no handshake.
//   - Questions. [Port.To] returns a client for the instance at an address. Its errors distinguish
//     "refused", "foreign", "another instance" and "silence". Questions are the methods of Config's
//     [Services]; [Services.Intercept] decides which are answered.
//   - Snapshots. [Port.SendSnapshot] streams one raft snapshot in chunks.
//   - Gossip. [Gossip] gives datagrams and byte streams to a gossip protocol that knows only
//     addresses.
//   - Duplicates. [Port.SendDuplicates] sends raft messages a second time, with the datagrams: TCP
//     holds back what follows a lost packet on a link. A duplicate is dropped if no link is up.
//
// The layout of messages is in wire/mortise/transport/v1/peer.proto. Those of questions are in
// wire/mortise/query/v1, which this package does not use.
//
// # Identity
//
// The ID of an instance is a hash of the public key of one incarnation; see package nodeid. On
// every connection each side sends one hello before anything else: protocol version, cluster label,
// public key, the intended instance, the kind of connection, group, raft ID, address, and three
// counters (see below). The hello is signed with the private key, over
//
//	"mortise-hello/2" 0x00, the role of the signer, the binding, SHA-256 of the dialer's hello,
//	and in the acceptor's signature SHA-256 of its own hello
//
// The binding is 32 bytes that only the two ends of this connection share: keying material of the
// TLS connection (RFC 9266), or without TLS a hash of 32 random bytes of each side, which costs a
// round trip. So a hello is refused if it was recorded, is relayed to another TLS connection, is
// sent back to its author, or answers another hello.
//
//	dialer                                acceptor
//	  |---- "mortise\n" [32 random bytes] -->|
//	  |<--- "mortise\n" [32 random bytes] ---|   without TLS only
//	  |---- hello, signed ------------------>|   verify: cluster, version, fields, signature
//	  |<------------------ hello, signed ----|   or a refusal, which is not signed
//	  |                                      |   the dialer verifies likewise, and compares the
//	  |                                      |   instance with the intended one
//	  |<==== frames, or calls of gRPC ======>|
//
// The exchange proves the instance IDs, and that both ends use the same connection. The holder of
// the key only claims the group, the raft ID, the address and the life; the packages that use this
// one decide which raft ID and which address belong to an instance. TLS proves only that a process
// may connect: all instances may share one certificate. Without TLS a party that relays all bytes
// of a connection is not detected, and can change what follows the hellos.
//
// A call belongs to the instance that opened its connection. If Identify begins a new incarnation,
// all links and all connections for calls end, and questions of the old incarnation are not
// answered. If only the group, the raft ID or the address changes, links send the change before
// anything later, and the next call opens a new connection.
//
// # Dials
//
// All dials of a port wait in one queue. A dial connects and does TLS and the hellos. It must
// connect within 1 s, and finish the hellos within another Config.DialTimeout. The time in the
// queue counts against neither: the caller's context ends that, and a link waits 10 s.
//
//	in flight   8, at most 5 of them to addresses that are not preferred, in order of arrival
//	begun       in any second at most 112, whatever is requested: 32 at once and 16 each second to
//	            ordinary addresses, 32 at once and 32 each second to preferred ones
//
// [Port.Prefer] sets the preferred addresses: those of the voters. Three places are reserved for
// them, so that they are reached while hundreds of other dials hang.
//
// After a failed dial its address pauses, for all kinds of traffic. The pause is random between
// zero and a limit that doubles with each failure:
//
//	ordinary address            250 ms to 30 s; to 5 s while this node has no group
//	preferred address           50 ms to 500 ms
//	the dial got an answer      to 500 ms: a refused connection, a foreign process, another version
//
// The pause applies only to the intended instance at that address if an instance of the cluster has
// answered, and it was another one, or refused this link, or the link lived for less than a second.
// A pause ends when an instance that claims that address proves its key on a connection here, when
// Identify begins a new incarnation, and when a dial succeeds. After a pause one dial tries the
// address, and the others wait for its result. 1,024 failures are remembered, each until 10 s after
// its pause; one more displaces the oldest.
//
// On Linux a link ends when bytes that its dialer has sent are not acknowledged by the other
// machine for three seconds, and each side of any connection resends lost packets at equal
// intervals.
//
// During a pause Send fails with ErrNoLink and SendSnapshot with ErrSilent. A question waits for
// the end of the pause, or fails at once with ErrSilent if its context ends before that.
// ErrRefused, ErrForeign and ErrVersion are returned only to questions that came before their dial
// began: they report what was at the address after the question was asked. A group may need such a
// proof from each of several addresses within two seconds, so the pause after an answer is short.
//
// Questions to one address share a connection and its dial, which goes on when its question is
// cancelled. A dial in the queue for which no question waits leaves the queue.
//
// # Turns
//
// At most one handshake of accepted connections per processor is computed at a time, so that other
// work goes on when many instances connect at once. A silent connection holds no turn. Waiting
// handshakes stand in lines: connections from the hosts of the voters first ([Port.Prefer]), then
// those from IP addresses on which an instance has proved its key in the last ten minutes (1,024
// are remembered), then the others. A handshake whose turn does not come within the dial timeout
// fails.
//
// # Tiers
//
// The verified certificates of a connection determine the tier of the peer and what it may do
// ([Identity]). Only a node of the root tier may serve: a dialed peer of another tier is refused
// before a byte from it is trusted. A peer of another tier only dials: its address and its raft ID
// are ignored, and its raft messages, replies, snapshots and gossip are dropped or refused. Without
// TLS every peer is of the root tier. A connection ends when a certificate of its chain expires,
// and within a minute after the certificate is no longer accepted (later if checking all of them
// would take more than 1 % of a processor).
//
// # Guarantees
//
//   - Data that [Port.Send] accepts reaches the peer's Handler.Frame whole, once and in order per
//     kind, or a Down for that peer comes afterwards. Raft messages are the exception: they may be
//     dropped, and are counted.
//   - For one peer the handler sees frames of one stream, then its Down, then frames of the next.
//     No frame from before a Down comes after it, except a duplicate that is being delivered at
//     that moment (see Handler). If a peer closes normally, or retires, everything that it sent
//     comes before the Down. If it crashes, its last frames may be lost.
//   - No byte of a connection reaches the handler before the hello on it is verified. A refused
//     connection does not affect the link of the instance that it claimed.
//   - [OtherError] is returned only if the other instance has proved its key. A refusal is
//     unsigned, so it never proves which instance is there.
//   - A frame of another group, or while either side has none, never reaches the handler; nor does
//     a raft message that is not from the peer's raft ID or not for ours. If that would lose
//     session data, the link ends and both sides are told why.
//   - If two dials cross, only the stream that the lower instance dialed is used, and the handlers
//     see nothing of the other.
//
// The life of a link to one instance:
//
//	none ----> dialing     Send with an address, unless that pauses (see Dials)
//	none ----> up          the peer's hello is accepted
//	dialing -> up          the peer answers our hello, or its own hello is accepted instead
//	dialing -> none        the dial fails, or another instance answers, or the proof fails: Down
//	up ------> ended       the stream breaks, the peer closes it or sends garbage, a newer hello of
//	                       the peer arrives, Identify, Close
//	ended ---> none        frames that have arrived are delivered; if this side ends the link,
//	                       waiting data is sent instead, for at most a second: then Down
//
// Crossing dials: a dial that has not sent its hello gives way to the peer's. If both have, the
// lower instance holds the peer's stream until its own dial is decided, and the higher instance
// cancels its own dial.
//
// Three fields of the hello decide which of two streams of one instance is newer. Boot is 16 random
// bytes of the process. Number rises with every stream that the process dials or accepts. Life
// counts the starts with one directory; it is 1 for an instance in memory.
//
//	same boot, number not higher    late: refused
//	same boot,  higher number       the peer has lost the existing stream, which first ends with Down
//	other boot, higher life         the peer's process has started again: likewise
//	other boot, life not higher     a copy of the directory runs: refused by ErrCopy, the link stays
//
// A replaced link and a refused copy are logged with both addresses.
//
// # Concurrency
//
// All methods of a Port are safe for concurrent use. None blocks except Remote.Invoke,
// SendSnapshot, DialStream (bounded by their contexts) and Close. A Remote is for one call at a
// time. Goroutines: per link a sender, a receiver, which calls the handler, and a timer; per
// address one that owns the connection for questions and gossip; per destination of packets one;
// per byte stream two. All end with [Port.Close] at the latest. No mutex is held while waiting or
// while a signature is verified. Nothing of an ended link stays behind but the record of a failed
// dial.
//
// Idle links are kept, because a leader needs them and a node has few others. One takes about 22
// KiB with TLS on either side, including stacks (TestIdleLinksAreSmall). Unused connections for
// questions and gossip are closed after 10 to 15 s, and unused streams of packets after 5 s.
//
// # Failure
//
// A peer that stops responding is detected after at most 25 s, on links by their keepalives; faster
// detection is raft's task. A peer that sends garbage loses its link, nothing else. "Foreign" needs
// a reason: a label, a protocol, a certificate, or a hello that is not signed with its key. A
// connection that breaks, or is closed without a reason, is silence and proves nothing. If only one
// side has TLS, the acceptor tells the dialer before it closes the connection (ErrSecured,
// ErrPlain). These errors are for people and count as silence, since a configuration may change at
// any moment.
//
// # Limits
//
// Config has the limits that a user may change, bounds.go and frames.go have the others. Other
// instances can make this one hold:
//
//	connection  8 for the calls of one instance; one more closes its oldest. One link per instance
//	call        a gRPC message has at most 128 KiB in any call; 64 calls are open on a connection
//	arriving    256 calls of one instance and 512 of all whose first message, or whole question, has
//	            not arrived; one more closes the connection of its oldest, or of the oldest of all.
//	            A question counts twice until its first message has arrived
//	question    of any method 2 MiB, in pieces, whole within twice the dial timeout; 4 MiB from one
//	            instance and 64 MiB from all at a time; 128 from one instance and 2,048 from all
//	            are being answered, each for at most 30 s
//	answer      32 MiB wait for one instance to read them, 128 MiB for all. The same limits apply
//	            to answers being received
//	snapshot    one from each instance, two in all, Config.SnapshotBytes in all. Group, raft ID
//	            and Handler.MaySendSnapshot are checked on the first chunk. After 30 s it must have
//	            delivered 256 KiB for each further second. Memory is allocated as it arrives, once
//	gossip      4 streams of packets and 4 byte streams of one instance, 1,024 and 32 in all; 128
//	            packets of at most 64 KiB wait to be read. 64 duplicates with 32 KiB come in one
//	            message, and as many wait for one address
//	link        a frame has at most 64 MiB and is filled up to 1 MiB. After 10 s it must have
//	            delivered 256 KiB for each further second. Frames above 16 KiB: at most 256 MiB of
//	            them are arriving, and above 128 MiB those that take more than a second are given
//	            up, the oldest first. A frame has at most 16,384 raft messages with 262,144
//	            entries, since these grow a hundredfold when they are decoded
//
// "One instance" is the one that has proved its key on the connection. A process that may connect
// can prove any number of keys: the limits for all instances bound it too, but it can use them up
// for the others. "Given up" means that the connection is closed.
//
// An accepted connection must finish TLS and its hello within 5 s. 1,024 connections may be in that
// state; one more displaces the oldest. Before its hello is verified a connection costs TLS, a
// buffer of 1 KiB and a greeting of at most 4 KiB, with a label of at most 255 bytes and an address
// of at most 512. Log lines that outsiders can cause appear at most once in 10 s for each kind, and
// separately for at most 16 instances at a time. A proof costs each side about 70 microseconds
// (BenchmarkProof measures both sides).
//
// # Refused alternatives
//
//   - Two open streams, the losing one finished first: this needs markers in the stream and a
//     second kind of end that is not a Down.
//   - Links as calls of gRPC: this needs two more goroutines on the path of each frame, HTTP/2's
//     frames and windows for a connection with one stream, and three times the allocations.
//   - Dials, retries and name resolution by gRPC: the reason of a failure would be unknown, and
//     there would be a second backoff.
//   - Questions as gRPC's unary calls: gRPC gathers a message of up to 2 MiB before this port sees
//     its sender and what that instance holds here already. Sixty calls on one connection could
//     hold 120 MiB.
//   - A signature in the certificate, over the key of TLS: instances could not share a user's own
//     certificate.
//   - An identity in each call: each call would have to prove it again.
package transport
