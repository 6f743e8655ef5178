// Package cluster finds the other instances, founds or joins a group with them, and keeps the
// group's voters up to date. One [Core] makes all decisions, and one owner goroutine carries them
// out. The core combines the cores of packages founding and lead with the address book. The
// simulation runs the same core.
//
// This instance asks the addresses that Join leads to until it belongs to a group with a leader.
// Package gossip spreads the name, zone, address and group of each running founder among the
// founders. If Replicas is set, every instance is a founder.
//
// While a lookup of an entry of Join fails, this instance founds no group, but still asks the known
// addresses. A lookup that finds no address does not prevent founding. Status.Waiting names the
// entries without a usable address.
//
//	Net.Ask, Resolve, gossip's news, Answer, HasLeader, BornApplied,
//	Configured, Retired, Look, RemovedPeer, QueryStatus, Recover, Adopt ──▶ inbox ──▶ owner ──▶ Host
//	                                                                         │
//	                             questions, lookups, joins (helpers) ◀───────┴──▶ view
//	                                                        (Status, Members, Voter, Report)
//
// In each turn the owner passes its inputs to the core, stores the decisions of Core.Tick, reports
// the events of Core.Follow to the Host, and carries out the actions of Core.Act.
//
// # Voters
//
// The leader of the group keeps the voters up to date. Package voters decides the steps, and this
// package connects it to the log and the network:
//
//	OwnState.Facts ──▶ Core.Act ──▶ step: Prepare ──▶ a question to that instance
//	   ▲  Look()         │            │               ──▶ its founding.Core ──▶ its Host.Prepared
//	   │                 │            └─ AddLearner, Change, Transfer ──▶ Host.Carry ──▶ the log
//	   │                 └──▶ probes: is that life over?                                   │ applied
//	   └───────────────────────────────────────────────────────────────────────────────────┤
//	                                   address book, gossip, Host.Voters ◀── Configured ◀──┘
//
// The leader evaluates its voters when the host calls Look, when the last step requests it, and
// once a second. Two evaluations are at least 50 ms apart.
//
// The number of a configuration is the index of its log entry. An instance receives configurations
// in these ways:
//
//   - Its log applies a configuration (Configured).
//   - Gossip spreads the numbers of the configurations. An instance with a lower number asks the
//     leader or a known voter, and later asks others, until its number is no longer lower.
//   - The leader sends a configuration (Push) to the replicas that are no longer part of it, and to
//     the instances whose sessions are attached to the leader, eight at a time.
//   - From time to time a member asks one of the addresses that Join leads to.
//   - An instance sends its configuration to a removed replica from which it receives raft messages
//     (RemovedPeer).
//
// An instance that leaves, or whose replica was removed, asks the leader whether its replica may
// stop (QueryStatus). Other instances answer with the leader's address.
//
// # Guarantees
//
// Gossip only suggests addresses to ask and to gossip with. Gossip never decides which instances
// vote, never ends a session or a replica, and never changes the address book.
//
// Only the configuration assigns raft IDs to instances. A new address of a voter is accepted from
// the log, from other voters, and from the instance itself if the connection has proved its ID. The
// address with the highest start number (Voter.Life) wins. An older configuration never replaces a
// newer one.
//
// A step is handed to the log once. It is handed over again only if the facts have changed, or
// after a second without effect. Only a leader answers a StatusQuery with a VoterStatus, from an
// evaluation at most 50 ms old.
//
// An incarnation has ended if its address refuses connections, or if another instance proves its
// own ID there. A replica has also ended if its own instance reports its end on a connection
// (PeerLost). Silence, gossip, an unsigned refusal or another program at the address proves
// nothing.
//
// A partition of any length heals. Every five to ten seconds an instance tries to gossip with some
// of the addresses that gossip does not report, at most four at a time, without end.
//
// A silent, foreign or slow address delays only the questions to that address. A lookup that never
// returns delays only its own entry.
//
// If an instance returns at another address, the others find it through its name in Join within
// 12.5 seconds, or within 1.25 seconds without a leader.
//
// With Config.Records the owner stores a decision before it sends an answer or a question or calls
// the Host. The owner increments the start number before gossip and the first answer. All instances
// may therefore return at new addresses at the same time, or at each other's addresses.
//
// # Concurrency
//
// All methods of [Cluster] are safe for concurrent use. One owner goroutine holds the state. Other
// goroutines post to its inbox or read the view that it publishes. These goroutines exist:
//
//	owner    by Start         owns everything; woken by its inbox and one timer; ended by Close
//	helpers  by the owner     one per question, lookup, gossip join and goodbye under way;
//	                          each bounded in time, ended by Close
//	lookups  by helpers       one per entry of Join under way, see discovery.Attempt: its context
//	                          ends after two seconds and with Close. If it ignores its context
//	                          (Config.JoinFunc, a file on a dead disk), Close returns without it
//	                          a second later
//	gossip   by gossip.Start  its own, see that package; ended by Close
//
// The owner blocks while Records saves, which takes a few milliseconds on a healthy disk. Questions
// of other instances wait meanwhile, and are dropped after a second.
//
// # Failure
//
// Status.Waiting or the log reports external problems, such as a missing answer, a name that does
// not resolve, different settings, clocks that disagree, or two groups. None of these problems ends
// a Cluster.
//
// Start fails only for a wrong Config or an unusable directory. A directory is unusable if it
// cannot be read or written, is damaged, was refused, belongs to another cluster, was used with
// Join and is now used without it, or the reverse.
//
// If writing to the directory fails later, the instance neither votes nor founds a group
// (DurableHost.Unsaved), gives up a charter that it could not store, and otherwise remains a
// member. A directory that is a copy, or was restored from an older copy, excludes the instance
// permanently (DurableHost.Refused).
//
// # Limits
//
// There are four records: "identity" (label, name, start number), "birth" (founding.State), "book"
// (the address book) and "key" (the private key). Each has a version byte, a CRC32C and at most 2
// MiB.
//
// At most eight questions of founding run at a time, one to each address, for at most a second. The
// configuration is sent to a removed peer at most once a second, and to at most 64 removed peers in
// a second. A name and a zone have at most 128 bytes each, and an address has at most 200 bytes.
// The addresses of 256 former members are remembered.
//
// # Refused alternative
//
// Nine places store voters. One place could not replace another, because each stores something
// different:
//
//	members, raftlog/core_members.go         the configuration that raft has applied: raft decides
//	                                         by it
//	View, internal/replica/view.go           a published copy of it, for other goroutines
//	bond, cluster/founding/bond.go           the newest configuration that founding believes; it may
//	                                         not be stored yet
//	State.Voters, cluster/founding/state.go  the record in the directory, for the next start
//	book, cluster/core.go                    the record that is stored, with addresses; others get
//	                                         only this one
//	before, cluster/spreading.go             members of replaced configurations, which still need the
//	                                         newest one
//	targets, session/client/finder.go        where a session looks for the leader; each client has
//	                                         its own place in the list
//	voters, internal/guest/session.go        what a guest has read; it has no book
//	voters, transport/turns.go               preferred host addresses; a handshake has shown no ID
//
// If bond and book were one, other instances would learn of voters before they are stored.
// internal/instance/picture.go stores names and zones of voters, for texts.
//
// Gossip alone could find voters and decide when to found a group. But gossip reports an
// unreachable instance as dead, forgets it half a minute later, and passes on reports about other
// instances.
package cluster
