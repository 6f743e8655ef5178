// Package transport carries bytes between the nodes of one cluster. All traffic uses one TCP port,
// with TLS if it is configured. gRPC carries everything except the links. Links have their own
// framing, because an exchange takes 45 microseconds on a link and would take 75 as a gRPC call
// (BenchmarkFrame). Every connection begins with a proof of the identities of both ends.
//
// # Kinds of traffic
//
// A [Port] listens and dials. It uses separate connections for different kinds of traffic, so that
// one kind does not delay another:
//
//   - Links. Two nodes share one long-lived stream for renewals, session commands, replies and
//     raft messages, with one [Frame] per turn. [Port.Spare] keeps links open to possible next
//     leaders.
//   - Questions. [Port.To] returns a client for the instance at an address. The client's errors
//     distinguish refusals from silence. [Services.Intercept] decides which questions are
//     answered.
//   - Snapshots. [Port.SendSnapshot] streams one raft snapshot in chunks.
//   - Gossip. [Gossip] provides datagrams and byte streams for a gossip protocol that identifies
//     peers by their addresses.
//   - Duplicates. [Port.SendDuplicates] sends raft messages a second time, together with the
//     datagrams, because a lost packet delays all later data on a link. The receiver drops
//     duplicates from instances without a link.
//
// The file wire/mortise/transport/v1/peer.proto defines the messages of this package. The messages
// of questions are in wire/mortise/query/v1.
//
// # Identity
//
// The ID of an instance is a hash of the public key of one incarnation; see package nodeid. On
// every connection each side first sends one hello. The hello contains the protocol version, the
// cluster label, the public key, the intended instance, the kind of connection, the group, the raft
// ID, the address, and three counters (see below). The private key signs the hello, over
//
//	"mortise-hello/1" 0x00, the role of the signer, the binding, SHA-256 of the dialer's hello,
//	and in the acceptor's signature SHA-256 of its own hello
//
// The binding is 32 bytes that only the two ends of this connection share. With TLS it is keying
// material of the TLS connection (RFC 9266). Without TLS it is a hash of 32 random bytes from
// each side. So each signature is valid only once: a hello is refused if it is replayed, is
// relayed to another TLS connection, or answers another hello.
//
//	dialer                                acceptor
//	  |---- "mortise\n" [32 random bytes] -->|
//	  |<--- "mortise\n" [32 random bytes] ---|   without TLS only
//	  |---- hello, signed ------------------>|   verify: cluster, version, fields, signature
//	  |<------------------ hello, signed ----|   or a refusal, which is not signed
//	  |                                      |   the dialer verifies the same, and compares
//	  |                                      |   the instance with the intended instance
//	  |<==== frames, or calls of gRPC ======>|
//
// The exchange proves the instance IDs, and that both ends use the same connection. The group, the
// raft ID, the address and the life are only claims; the packages that use this one decide which
// raft ID and address belong to an instance. TLS proves only that a process may connect. Without
// TLS, a party that relays all bytes of a connection is not detected, and can change everything
// after the hellos.
//
// A call belongs to the instance that opened its connection. If Identify begins a new incarnation,
// all links and all connections for calls end, and questions of the old incarnation get no answer.
// If Identify changes only the group, the raft ID or the address, each link sends the change before
// any later data, and the next call opens a new connection.
//
// # Dials
//
// All dials of a port wait in one queue. A dial connects and performs the TLS handshake and the
// exchange of hellos. It must connect within 1 s, and finish the hellos within a further
// Config.DialTimeout. The caller's context, or 10 s for a link, limits the time in the queue.
//
//	in flight   8, at most 5 of them to addresses that are not preferred, in order of arrival
//	begun       in any second at most 112, whatever is requested: 32 at once and 16 each second to
//	            ordinary addresses, 32 at once and 32 each second to preferred ones
//
// [Port.Prefer] sets the preferred addresses, which are those of the voters. Three places are
// reserved for preferred addresses.
//
// A failed dial starts a pause of the address: it is not dialed for a random time. The time is
// between zero and a limit that doubles with each failure:
//
//	ordinary address            250 ms to 30 s; to 5 s while this node has no group
//	preferred address           50 ms to 500 ms
//	the dial got an answer      to 500 ms: a refused connection, a foreign process, another version
//
// If an instance of the cluster answered, the pause applies only to dials that want the same
// instance at this address. A pause ends early when an instance that claims the address proves
// its key to this port, when Identify begins a new incarnation, and when a dial succeeds. After a
// pause, one dial tries the address, and other dials wait for its result. A port remembers up to
// 1,024 failures, each until 10 s after its pause.
//
// On Linux a link ends if the other machine does not acknowledge bytes from the link's dialer for
// three seconds.
//
// During a pause Send fails with ErrNoLink and SendSnapshot with ErrSilent. A question waits for
// the end of the pause, or fails immediately with ErrSilent if its context ends earlier.
// ErrRefused, ErrForeign and ErrVersion are returned only to questions that were asked before the
// dial began.
//
// Questions to one address share a connection and its dial. A dial that has begun continues if its
// question is cancelled.
//
// # Turns
//
// At most one handshake of an accepted connection is computed per processor at a time, so that
// other work continues when many instances connect. A handshake that waits for its peer holds no
// turn. Turns go first to connections from the hosts of the voters ([Port.Prefer]), then to
// connections from IP addresses on which an instance has proved its key in the last ten minutes,
// then to all others. A handshake that gets no turn within the dial timeout fails.
//
// The handshakes of one host are limited, too, because a host can connect under any number of keys.
// A host is an IPv4 address or a network of 64 bits of IPv6 addresses. The hosts of the voters have
// no limit. A connection beyond the limit waits before it gets its first turn, and can be displaced
// meanwhile. If it would wait for over a second, it is closed without a handshake, which counts as
// silence for the dialer. So programs that share an address with an attacker connect late, or not
// until the attacker ends. Connections that they have already opened are not affected.
//
// # Tiers
//
// The verified certificates of a connection determine the tier and the rights of the peer
// ([Identity]). Only a node of the root tier may accept connections: a dialed peer of another tier
// is refused before any of its data is used. A peer of another tier may only dial. Its address and
// its raft ID are ignored, and its raft messages, replies, snapshots and gossip are dropped or
// refused. Without TLS every peer is of the root tier. A connection ends when a certificate of its
// chain expires. If the certificate is no longer accepted, the connection usually ends within a
// minute.
//
// # Guarantees
//
//   - Data that [Port.Send] accepts reaches the peer's Handler.Frame whole, once and in order per
//     kind. If it does not, this port calls Handler.Down for that peer. Raft messages are the
//     exception: they may be dropped, and Counts reports how many were dropped.
//   - For one peer the handler receives the frames of one stream, then its Down, then the frames
//     of the next stream. No frame follows the Down of its stream, except a duplicate that is
//     being delivered at that moment (see Handler). If a peer closes normally or retires,
//     everything that it sent arrives before the Down. If it crashes, its last frames may be
//     lost.
//   - No byte of a connection reaches the handler before the hello on the connection is verified.
//     A refused connection does not affect the link of the instance that it claimed to be from.
//   - [OtherError] is returned only if the other instance has proved its key. A refusal is not
//     signed, so it never proves which instance sent it.
//   - The handler receives no frame from another group, and no frame while either side has no
//     group. It receives a raft message only if sender and receiver are the raft IDs of the peer
//     and of this node. If session data is lost because of these rules, the link ends, and both
//     sides get an error with the reason.
//   - If two nodes dial each other simultaneously, only the stream that the node with the lower
//     instance ID dialed is used.
//
// The life of a link to one instance:
//
//	none ----> dialing     Send with an address, unless the address pauses (see Dials)
//	none ----> up          the peer's hello is accepted
//	dialing -> up          the peer answers our hello, or its own hello is accepted instead
//	dialing -> none        the dial fails, or another instance answers, or the proof fails: Down
//	up ------> ended       the stream breaks, the peer closes it or sends garbage, a newer hello of
//	                       the peer arrives, Identify, Close
//	ended ---> none        frames that have arrived are delivered, then Down; but if this side ends
//	                       the link, waiting data is sent for at most a second, then Down
//
// Crossing dials: a dial that has not sent its hello is cancelled in favor of the peer's stream. If
// both sides have sent their hellos, the node with the lower instance ID keeps the peer's stream
// waiting until its own dial is decided, and the other node cancels its own dial.
//
// Three fields of the hello decide which of two streams of one instance is newer. The field Boot
// has 16 random bytes of the process. The field Number increases with every stream that the
// process dials or accepts. The field Life counts the starts with one directory, and is 1 for an
// instance in memory.
//
//	same boot, number not higher    the new stream is late: refused
//	same boot, higher number        the peer has lost the existing stream, which first ends with Down
//	other boot, higher life         the peer's process has started again: the existing stream first
//	                                ends with Down
//	other boot, life not higher     a copy of the directory runs: refused with ErrCopy, the existing
//	                                link is kept
//
// # Concurrency
//
// All methods of a Port are safe for concurrent use. Only Remote.Invoke, SendSnapshot, DialStream
// (each limited by its context) and Close block. A Remote is for one call at a time. A link has a
// goroutine that sends, and a goroutine that receives and calls the handler. All goroutines end
// with [Port.Close] at the latest.
//
// Idle links are kept. With TLS a link takes about 22 KiB on each side, including stacks
// (TestIdleLinksAreSmall). Unused connections for questions and gossip are closed after 10 to 15 s.
//
// # Failure
//
// A peer that stops responding is detected after at most 25 s. A peer that sends garbage loses only
// its link. ErrForeign requires evidence: another cluster label, another protocol, an unacceptable
// certificate, or a hello that is not signed with its key. A connection that breaks, or is closed
// without a reason, counts as silence and proves nothing. If only one side has TLS, the acceptor
// reports this to the dialer (ErrSecured, ErrPlain). These two errors also count as silence.
//
// # Limits
//
// The limits that a user may change are in Config. The other limits are in bounds.go and frames.go.
// Other instances can make this instance hold:
//
//	connection  8 for the calls of one instance; a ninth closes the oldest. One link per instance.
//	            4,096 accepted connections of one derived secret (a sixteenth of Config.Conns), which
//	            may open 4,096 at once and then 64 a second; a further one is refused with ErrFull
//	host        4,096 connections at once and then 64 a second, except from the hosts of the voters.
//	            A connection whose handshake fails counts as eight
//	header      HTTP/2 frames without at least 256 bytes of data: 16,384 at once and then 4,096 a
//	            second on a connection, four times as many for one derived secret. A question that
//	            is answered pays for its own frames. A further frame closes the connection, and a
//	            WARN names the peer. The connection counts as 1,024 of its secret and of its host
//	call        a gRPC message has at most 128 KiB in any call; 64 calls are open on a connection
//	arriving    256 calls of one instance or one derived secret, 384 of all derived secrets and 512
//	            of all instances. A question is arriving until all of it has arrived, and any other
//	            call until its first message has arrived. A further call closes the connection of
//	            the oldest. A question counts twice until its first message has arrived
//	question    A question of any method has at most 2 MiB, and arrives in pieces within twice the
//	            dial timeout. The questions held at a time have at most 4 MiB for one instance and
//	            64 MiB for all. At most 128 questions of one instance and 2,048 of all are
//	            answered at a time, each for at most 30 s
//	answer      32 MiB wait for one instance to read them, 128 MiB for all. The same limits apply
//	            to answers being received
//	snapshot    one from each instance, two in all, Config.SnapshotBytes in all. Group, raft ID
//	            and Handler.MaySendSnapshot are checked on the first chunk. After 30 s it must have
//	            delivered 256 KiB for each further second. Its buffer grows as data arrives
//	gossip      4 streams of packets and 4 byte streams of one instance, 1,024 and 32 in all; 128
//	            packets of at most 64 KiB wait to be read. One message has at most 64 duplicates
//	            with 32 KiB in all, and as many wait for one address
//	link        a frame has at most 64 MiB and is filled up to 1 MiB. After 10 s it must have
//	            delivered 256 KiB for each further second. Frames above 16 KiB: at most 256 MiB of
//	            them are arriving, and above 128 MiB those that take more than a second are given
//	            up, the oldest first. A frame has at most 16,384 raft messages with 262,144
//	            entries, since these grow a hundredfold when they are decoded
//
// In this table, "one instance" means all connections on which the same key was proved. A process
// that may connect can prove any number of keys. So all instances with one derived secret have at
// most a quarter of a limit for all, and all derived secrets together at most three quarters (see
// package fair): the instances with the root secret keep the rest. They can exhaust the limits for
// all instances, and without TLS every peer can. "Given up" means that the connection is closed.
//
// An accepted connection must finish TLS and its hello within 5 s. Up to 1,024 connections may be
// in that state, and a further connection displaces the oldest. Before its hello is verified, a
// connection costs a TLS handshake, a buffer of 1 KiB and a greeting of at most 4 KiB. The same
// is true for a connection that is refused because of its derived secret. Each kind of
// log line that outsiders can cause appears at most once in 10 s.
//
// # Refused alternatives
//
//   - Two open streams between two nodes until the superfluous stream is drained and closed: this
//     needs markers in the stream, and a second way to end a stream without a Down.
//   - Links as calls of gRPC: this needs two more goroutines on the path of each frame, HTTP/2's
//     frames and windows for a connection with one stream, and three times the allocations.
//   - Dials, retries and name resolution by gRPC: gRPC does not report why a dial failed, and has
//     its own backoff.
//   - Questions as unary gRPC calls: gRPC gathers a message of up to 2 MiB before this port can
//     identify its sender. Sixty calls on one connection could hold 120 MiB.
package transport
