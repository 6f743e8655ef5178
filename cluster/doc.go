// Package cluster finds the other instances, founds or joins a group with them, and keeps the
// group's voters up to date. It consists of one [Core] and the core's owner. The core combines the
// cores of packages founding, lead and voters with the address book. The simulation runs the same
// core.
//
// Three activities run concurrently. This instance asks the addresses that Join leads to until it
// belongs to a group that has a leader. Package gossip spreads the name, zone, address and group of
// each running instance among the founders; with Replicas every instance is a founder. And this
// instance repeatedly tries the addresses of founders that it cannot reach, without end.
//
// While a lookup of an entry of Join fails, this instance founds no group, and Status.Waiting names
// the entry. It still asks the addresses that it knows. A lookup that succeeds and finds no address
// does not prevent founding. Status.Waiting also names entries that lead to no instance, or only to
// this instance.
//
//	Net.Ask, Resolve, gossip's news, Answer, HasLeader, BornApplied,
//	Configured, Retired, Look, RemovedPeer, QueryStatus, Recover, Adopt ──▶ inbox ──▶ owner ──▶ Host
//	                                                                         │
//	                             questions, lookups, joins (helpers) ◀───────┴──▶ view
//	                                                        (Status, Members, Voter, Report)
//
// In each turn the owner passes the collected inputs to the core, stores the decisions of
// Core.Tick, reports the events of Core.Follow to the Host, and carries out the actions of
// Core.Act. The owner itself decides only how many questions run concurrently, and what to log.
//
// # Voters
//
// Once the group is born, its leader keeps the set of voters up to date. Package voters decides the
// steps; this package connects package voters to the log and the network:
//
//	Host.Facts ──▶ Core.Act ──▶ step: Prepare ──▶ a question to that instance
//	   ▲  Look()     │            │               ──▶ its founding.Core ──▶ its Host.Prepared
//	   │             │            └─ AddLearner, Change, Transfer ──▶ Host.Carry ──▶ the log
//	   │             └──▶ probes: is that life over?                                   │ applied
//	   └───────────────────────────────────────────────────────────────────────────────┤
//	                               address book, gossip, Host.Voters ◀── Configured ◀──┘
//
// The leader evaluates its voters when the host calls Look, when the last step asks for another
// evaluation, and once a second. Two evaluations are at least 50 ms apart.
//
// The number of a configuration is the index of its log entry. The configuration with the higher
// number is the newer one. Package founding defines when an instance accepts a configuration. An
// instance receives newer configurations in these ways:
//
//   - Its log applies the configuration (Configured).
//   - Gossip carries configuration numbers. An instance that knows only a lower number asks the
//     leader or a known voter for the configuration. It asks another one after two seconds, or
//     after 250 ms if it has asked a voter that does not lead.
//   - The leader sends it (Push) to the replicas that the configuration leaves out, and to the
//     instances whose sessions are attached to the leader, eight at a time.
//   - From time to time a member asks one of the addresses that Join leads to.
//   - An instance that receives raft messages from a replica outside its configuration sends the
//     configuration to that replica's instance (RemovedPeer).
//
// An instance asks the leader (QueryStatus) whether its replica may stop and for the state of the
// voters. An instance that does not lead answers with the leader's address. Both an instance that
// leaves (Departure) and a removed replica (Host.Removed, Dismissed) use this query.
//
// # Guarantees
//
// Gossip only suggests addresses to ask and to gossip with. Gossip never decides which instances
// vote, never ends a session or a replica, and never changes the address book. Only the
// configuration decides which instance has a raft ID. The address book accepts a new address of a
// voter from its instance, on a connection that has proved the instance's ID, from the log, and
// from another voter. The address with the highest start number wins (Voter.Life). An entry is
// removed only when its raft ID leaves the configuration. An older configuration never replaces a
// newer one.
//
// A step is handed to the log once. The same step is handed over again only if the facts have
// changed, or after a second without effect. Answers to questions of an earlier term are ignored.
// Only a leader answers a StatusQuery with a VoterStatus, from an evaluation at most 50 ms old.
//
// The leader treats an incarnation as ended if its address refuses connections, or if another
// instance proves its own ID at that address. Silence, gossip, an unsigned refusal and another
// program at that address prove nothing. The leader also treats a replica as ended if the replica's
// instance has reported the end on its own connection (PeerLost).
//
// A partition of any length heals. Every five to ten seconds an instance tries some of the
// addresses that it misses, at most four at a time, without end. These are the addresses of
// founders that it met and of former members, and with Replicas also those of Join and of the
// voters.
//
// A silent, foreign or slow address delays only the questions to this address, and a lookup that
// never returns delays no other lookup.
//
// If an instance returns at another address, the others find it through its name in Join within
// 12.5 seconds, or within 1.25 seconds if they have no leader. They find it even if it does not
// find any of them.
//
// With Config.Records the owner stores a decision before it sends an answer, calls the Host or
// sends a question. At each start the owner increments the start number before it gossips or
// answers. The other instances use this number to recognize the newest address of an instance. So
// all instances may return at new addresses at the same time, or at each other's addresses.
//
// # Concurrency
//
// All methods of [Cluster] are safe for concurrent use. One owner goroutine holds the state. Other
// goroutines post to the owner's inbox or read the view that the owner publishes. These goroutines
// exist:
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
// of other instances wait meanwhile, and are dropped after a second. The owner saves a few times in
// each incarnation, and whenever a voter has moved.
//
// The owner goroutine calls the methods of Host. Late reports about an incarnation are dropped
// after its restart in place. QueryStatus blocks its caller's goroutine; the owner asks one
// question at a time for it.
//
// # Failure
//
// External problems do not end a Cluster. Examples are an instance that does not answer, a name
// that does not resolve, different settings, clocks that disagree, and two groups. They appear in
// Status.Waiting or in the log. Start fails only for a Config or a directory that cannot work. A
// directory cannot work if it cannot be read or written, is damaged, was refused, belongs to
// another cluster, or was used with Join and now is not, or the reverse. Close may be called at any
// time, in every state. It waits for a Save that is under way, at most 5 s.
//
// If the directory fails later, the instance makes no new promise. It neither votes nor founds a
// group (DurableHost.Unsaved), leaves a charter that it could not store, and otherwise remains a
// member. An instance whose directory is a copy, or was restored from an older copy, is excluded
// permanently (DurableHost.Refused).
//
// # Limits
//
// There are four records: "identity" (label, name, start number), "birth" (founding.State), "book"
// (the address book) and "key" (the private key). Each has its own version byte and CRC32C, and at
// most 2 MiB.
//
// At most eight questions of founding run at a time, only one to each address, and each ends after
// a second. In addition one question runs for each Prepare, probe and announcement under way; the
// number of replicas in the configuration limits these. A removed peer is sent the configuration at
// most once a second, and at most 64 removed peers in a second. A name and a zone have at most 128
// bytes and an address 200 bytes. The addresses of 256 former members are remembered.
//
// # Refused alternative
//
// Founding groups and finding voters by gossip alone. Gossip reports an instance as dead when it
// merely cannot reach the instance, forgets the instance half a minute later, and repeats reports
// about third instances. A question that only the instance in question can answer has none of these
// faults, and needs no time to converge.
package cluster
