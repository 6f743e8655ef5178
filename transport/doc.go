// Package transport carries bytes between the nodes of one cluster: one TCP port for everything,
// TLS if given, gRPC for all but the links. Links have a framing of their own, a length before each
// frame, since a lock waits for one or two exchanges: one takes 45 microseconds so, and took 75 as
// a call of gRPC (BenchmarkFrame). Every connection begins with a proof of which instances are at
// its two ends.
//
// # What it is
//
// A [Port] listens, dials and keeps four kinds of traffic apart, each on connections of its own so
// that none holds up another:
//
//   - Links. Between two nodes one long-lived stream carries renewals, session commands, replies
//     and raft messages, with one [Frame] per turn: a sender goroutine per link takes everything
//     that waits, renewals first, encodes it once and sends it. Either side dials on demand. All
//     that a lock waits for goes this way, so a stream is a connection of its own, on which frames
//     stand behind their lengths. [Port.Spare] keeps links that the next leader will need, so that
//     a change of leader needs no handshake.
//   - Questions. What [Port.To] returns asks the instance at an address, and distinguishes
//     "refused", "foreign", "another instance" and "silence". Questions are the methods of the
//     [Services] of Config, each a stream of pieces either way. [Services.Intercept] decides which
//     are answered.
//   - Snapshots. [Port.SendSnapshot] streams one raft snapshot in chunks.
//   - Gossip. [Gossip] gives datagrams and byte streams to a gossip protocol that knows only
//     addresses.
//   - Duplicates. [Port.SendDuplicates] sends raft messages that a link carries a second time,
//     among the datagrams. TCP holds back what stands on a link behind a lost packet; the other
//     connection loses other packets. A duplicate is dropped where no link is up.
//
// The layout of messages is in wire/mortise/transport/v1/peer.proto; those of questions are in
// wire/mortise/query/v1, and nothing here knows them.
//
// # Identity
//
// An [Instance] is a hash of the public key of one life of a node, see package nodeid. Each side of
// a connection, whatever the connection is for, sends one hello before anything else: protocol
// version, cluster label, public key, the instance that is meant, the kind of connection, group,
// raft ID, address, and three counters (see below). The hello is signed with the private key, over
//
//	"mortise-hello/2" 0x00, the role of the signer, the binding, SHA-256 of the dialer's hello,
//	and in the acceptor's signature SHA-256 of its own hello
//
// The binding is 32 bytes that only the two ends of this connection share: keying material of the
// TLS connection (RFC 9266), or without TLS a hash of 32 random bytes of each side. So a hello that
// was recorded, that is relayed to another TLS connection, that is sent back to its author or that
// answers another hello is refused. The dialer signs in its first flight after TLS, which adds no
// round trip; the random bytes of plain text add one. Signatures are verified outside every lock.
//
//	dialer                                acceptor
//	  |---- "mortise\n" [32 random bytes] -->|
//	  |<--- "mortise\n" [32 random bytes] ---|   without TLS only
//	  |---- hello, signed ------------------>|   verify: cluster, version, fields, signature
//	  |<------------------ hello, signed ----|   or a refusal, which is not signed
//	  |                                      |   the dialer verifies likewise, and compares the
//	  |                                      |   instance with the one that it meant
//	  |<==== frames, or calls of gRPC ======>|
//
// Proven is the instance ID, and with it that both ends speak on the same connection. Not proven
// are the group, the raft ID, the address and the life: the holder of the key says these, and may
// lie. Which raft ID and which address belong to an instance is decided in the rooms above. TLS
// proves only that a process may come in: all instances may share one certificate. Without TLS a
// party that relays all bytes of a connection goes unnoticed and can change what follows the
// hellos.
//
// Calls carry no identity. A call is of the instance that has opened its connection. If Identify
// begins a new life, all links end, and so do all connections for calls, dialed and accepted; what
// was asked in the old life is not answered. If only the group, the raft ID or the address changes,
// links say so before anything that is sent later, and the next call makes a connection anew.
//
// # Dials
//
// All dials of a port stand in one queue: those of links, questions, gossip and snapshots. A dial
// is a connection with its TLS and its hellos. The connection must be there after 1 s, and the
// hellos after Config.DialTimeout more. The time in the queue counts against neither, but the
// caller's context ends it; what waits on a link waits 10 s.
//
//	in flight   8, and 5 to addresses that are not preferred, in the order in which they came
//	begun       in any second at most 112, whatever is asked for: 32 at once and 16 each second to
//	            ordinary addresses, 32 at once and 32 each second to preferred ones
//
// [Port.Prefer] names the preferred addresses: those of the voters. Three places are always free
// for them, so that they are reached while hundreds of others hang.
//
// After a failed dial its address pauses, for links, questions, gossip and snapshots alike. The
// pause is random between zero and a limit, which doubles with each failure:
//
//	ordinary address            250 ms to 30 s; to 5 s while this node has no group
//	preferred address           50 ms to 500 ms
//	the dial found an answer:   to 500 ms: a refused connection, a foreign process, another version
//
// If the address has answered as one of ours, and only the instance that was meant is not there, or
// it refuses this link, or the link lived for less than a second, the pause is of that instance at
// that address alone. A pause ends when an instance that says it is at that address proves its key
// on a connection here, when Identify begins a new life, and when a dial succeeds. After a pause
// one dial tries the address, and the others wait for what it finds. 1,024 failures are remembered,
// each until 10 s after its pause; one more displaces the oldest.
//
// On Linux a link ends when bytes that its dialer has sent are not acknowledged by the other
// machine for three seconds. After a cut TCP would wait as long again before it tries once more. On
// Linux, too, each side of any connection sends again at equal intervals what was lost.
//
// During a pause Send fails with ErrNoLink and SendSnapshot with ErrSilent. A question waits for
// the end of the pause, or fails at once with ErrSilent if its context ends before that. It never
// repeats what the last dial found: ErrRefused, ErrForeign and ErrVersion say what was at the
// address after the question was put, so they are returned only to questions that came before their
// dial began. A group may wait for such a proof from each of several addresses within two seconds,
// which is why the pause behind an answer is short.
//
// Questions to one address share a connection and its dial. A dial that has begun goes on when its
// question is given up, and the next one uses it; a dial that no question waits for leaves the
// queue.
//
// # Turns
//
// At most as many handshakes of accepted connections are computed at a time as there are
// processors, so that in a crowd of them the work of this node waits behind one each and not behind
// all. A handshake holds its turn from the moment when bytes of the other side have come until it
// waits for more, or has sent its answer: a connection that is silent, at once or halfway, holds
// none, however many there are. Those that wait stand in lines. Connections from the hosts of the
// voters come first ([Port.Prefer]), then those from IP addresses on which an instance has proved
// its key in the last ten minutes (1,024 are remembered), then the others. Among each of these
// those that have begun come before new ones, and else the first that came. A handshake whose turn
// does not come in the dial timeout is given up. Bounds of unfinished connections stand under
// Limits.
//
// # Tiers
//
// The verified certificates of a connection say which tier the peer has and what it may do; that is
// computed once for each connection, and [Identity] carries it. A node of the root tier may serve:
// what is dialed and has another tier is refused before a byte of it is believed. A peer of another
// tier only dials: its address and its raft ID are not taken in, and its raft messages, replies,
// snapshots and gossip are dropped or refused. Without TLS every peer is of the root tier. A
// connection ends when a certificate of its chain ends, and within a minute after the certificate
// is no longer accepted (later if checking all of them would take more than one part in a hundred
// of a processor).
//
// # Guarantees
//
//   - What [Port.Send] accepts reaches the peer's Handler.Frame whole, once and in order per kind,
//     or a Down for that peer comes afterwards. Raft messages are the exception: they may be
//     dropped, and are counted.
//   - For one peer the handler sees frames of one stream, then its Down, then frames of the next.
//     Nothing comes behind a Down from before it, but for a duplicate that is being handed over at
//     that moment (see Handler). When a peer closes in good order, or retires, everything that it
//     sent comes before the Down; when it crashes the last frames may be lost with it.
//   - No byte of a connection reaches the handler before the hello on it was verified. A refused
//     connection changes nothing about the link of the instance that it claimed.
//   - [OtherError] is returned only if the other instance has proved its key. A refusal is
//     unsigned, so it is never proof of which instance is there.
//   - A frame of another group, or while either side has none, never reaches the handler; nor does
//     a raft message that is not from the peer's raft ID or not for ours. Where that would lose
//     words of a session, the link ends and both sides are told why.
//   - Of crossing dials one stream comes to be used, the one that the lower instance dialed, and
//     the handlers hear nothing of the other.
//
// The life of a link to one instance:
//
//	none ----> dialing     Send with an address, unless that pauses (see Dials)
//	none ----> up          the peer's hello is accepted
//	dialing -> up          the peer answers our hello, or its own hello is accepted instead
//	dialing -> none        the dial fails, also because another instance answers or the proof fails: Down
//	up ------> ended       the stream breaks, the peer closes it or sends garbage, a newer hello of the peer comes, Identify, Close
//	ended ---> none        what had arrived is handed over (or, if the end is ours, what waits goes out, for at most a second): Down
//
// Crossing dials: a dial that has not sent its hello gives way to the peer's. Once it has, the
// lower instance waits with the peer's stream until its own dial is decided, and the higher gives
// its own up. So there is never a second stream to move frames from.
//
// Which of two streams of one instance is newer is decided by three fields of the hello. Boot is 16
// random bytes of the process. Number rises with every stream that the process dials or accepts.
// Life counts the starts with one directory; it is 1 for an instance in memory.
//
//	same boot,  number not higher   late: refused
//	same boot,  higher number       the peer has lost the stream in use, which is ended, with a Down, first
//	other boot, higher life         the peer's process has started again: likewise
//	other boot, life not higher     a copy of its directory runs too: refused with ErrCopy, the link stays
//
// A link that was replaced and a copy that was refused are logged with both addresses.
//
// # Concurrency
//
// All methods are safe for concurrent use, and none waits except Remote.Invoke, SendSnapshot,
// DialStream (bounded by their contexts) and Close. Goroutines: per link a sender, woken by the
// queue, and a receiver, which calls the handler and in the end its Down, and a timer; per address
// one that owns the connection for questions and gossip, also while it waits for its dial; per
// address that packets go to one outbox; per byte stream two. All end with [Port.Close] at the
// latest, and nothing of a link that has ended stays behind, but for the memory of a failed dial
// (see Dials). No lock is held across a wait.
//
// Links at rest are kept, since a leader wants them and a node has few others. Such a link holds
// about 22 KiB with TLS on either side, stacks included (TestIdleLinksAreSmall): buffers grow with
// what is sent, and a link gives them back after 32 frames in a row that did not need them.
// Connections for questions and gossip are closed after 10 to 15 s of disuse, and a stream of
// packets after 5 s.
//
// # Failure
//
// gRPC never dials, retries or resolves names here: a connection is dialed by Config.Dial and used
// for one gRPC client, so the reason of a failure is known, and the only back-off is that of Dials.
// A peer that falls silent is found out after at most 25 s, on links because they say now and then
// that they are still there; faster detection is raft's business. A peer that sends garbage loses
// its link, nothing else. "Foreign" needs a reason: a label, a protocol, a certificate, a hello
// that is not signed with its key. A connection that breaks, or is closed without a word, is
// silence and proves nothing. If only one side has TLS, the acceptor says which before it hangs up:
// to a dialer without TLS by an alert, to one with TLS by the preface in plain text. That is
// ErrSecured or ErrPlain, a reason for people; it counts as silence, since a configuration may
// change in a moment.
//
// # Limits
//
// Config names the bounds that a user may change, bounds.go and frames.go the others. What another
// instance can make this one hold:
//
//	connection  8 for the calls of one instance; one more closes its oldest. One link for each instance
//	call        a gRPC message has at most 128 KiB in any call; 64 calls are open on a connection
//	arriving    256 calls of one instance and 512 of all whose first message, or whole question, has
//	            not come; one more closes the connection of its oldest, or of the oldest of all. A
//	            question counts twice until its first message has come
//	question    of any method 2 MiB, in pieces, whole within twice the dial timeout; 4 MiB from one instance and
//	            64 MiB from all at a time; 128 from one instance and 2,048 from all are being
//	            answered, each for at most 30 s
//	answer      32 MiB wait for one instance to read them, 128 MiB for all. The same bounds hold for
//	            answers that come in
//	snapshot    one from each instance, two in all, Config.SnapshotBytes in all. Group, raft ID
//	            and Handler.MaySendSnapshot are checked on the first chunk. After 30 s it must have
//	            brought 256 KiB for each further second. Memory is taken as it arrives, once
//	gossip      4 streams of packets and 4 byte streams of one instance, 1,024 and 32 in all; 128
//	            packets of at most 64 KiB wait to be read. 64 duplicates with 32 KiB come in one
//	            message, and as many wait for one address
//	link        a frame has at most 64 MiB and is filled up to 1 MiB. After 10 s it must have brought
//	            256 KiB for each further second. Frames above 16 KiB: at most 256 MiB of them are
//	            arriving, and above 128 MiB those that take more than a second are given up, the
//	            oldest first. A frame has at most 16,384 raft messages with 262,144 entries, since
//	            these grow a hundredfold when they are decoded
//
// "One instance" is the one that has proved its key on the connection; what a message says never
// counts. A process that may come in can prove any number of keys: the bounds of all instances hold
// against it too, but it can take them from the others.
//
// "Given up" means that the connection is closed. A connection that is accepted must finish TLS and
// its hello in 5 s; 1,024 may be about to, and one more costs the oldest of them its place. Before
// its hello was verified a connection costs TLS, a buffer of 1 KiB and a greeting of at most 4 KiB,
// of which the address may have 512 bytes; a label has at most 255. Log lines that outsiders can
// cause come at most once in 10 s for each kind, and for at most 16 instances at a time separately,
// since making a key costs an outsider nothing. A proof costs each side a signature and a
// verification, together about 70 microseconds (BenchmarkProof measures both sides).
//
// # Refused alternative
//
// Two open streams, with the frames of the losing one finished before those of the winner: it needs
// markers in the stream and a second kind of end that is no Down. Deciding before either is used
// needs neither.
//
// Links as calls of gRPC, which they once were: two goroutines more on the way of each frame,
// HTTP/2's own frames and windows for a connection with one stream, and three times the
// allocations. What HTTP/2 gave is small without it: a length before each frame, TCP's window, a
// sign of life.
//
// Questions as gRPC's unary calls. gRPC gathers a message of up to 2 MiB before this port sees
// whose it is and what that instance has here already: sixty on one connection could hold 120 MiB.
//
// A signature in the certificate, over the key of TLS: it needs a certificate for each life, and a
// certificate of one's own that all instances share could not be used. An identity in each call, as
// it once was: each call would have to prove it again.
package transport
