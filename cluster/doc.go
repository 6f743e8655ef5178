// Package cluster finds the other instances, founds or joins a group with them, and keeps the
// group's voters up to date. It is one [Core] and its owner. The core joins those of founding, lead
// and voters with the address book; the simulation runs the same core.
//
// Three things happen side by side. This instance asks addresses behind Join until it belongs to a
// group that has a leader. Package gossip spreads a list of the running instances among the
// founders, with the zone, address and group of each; with Replicas every instance is a founder.
// And the core tries without end to reach founders that are missing.
//
// If the lookup of an entry of Join fails, no group is founded, and Status.Waiting names the entry;
// addresses that are known are still asked. A lookup that finds no address blocks nothing.
// Status.Waiting also names entries that lead to no instance, or only to this one.
//
//	Net.Ask, Resolve, gossip's news, Answer, HasLeader, BornApplied,
//	Configured, Retired, Look, RemovedPeer, QueryStatus, Recover, Adopt ──▶ inbox ──▶ owner ──▶ Host
//	                                                                         │
//	                             questions, lookups, joins (helpers) ◀───────┴──▶ view
//	                                                        (Status, Members, Voter, Report)
//
// In a turn the owner passes the collected inputs to the core, stores the decisions of Core.Tick,
// reports the results of Core.Follow to the Host, and starts the actions of Core.Act. The owner
// itself decides only how many questions run at the same time, and what to log.
//
// # Who votes
//
// Once the group is born, its leader maintains its voters. Package voters decides the steps; this
// package connects it to the log and the network:
//
//	Host.Facts ──▶ Core.Act ──▶ step: Prepare ──▶ a question to that instance
//	   ▲  Look()     │            │               ──▶ its founding.Core ──▶ its Host.Prepared
//	   │             │            └─ AddLearner, Change, Transfer ──▶ Host.Carry ──▶ the log
//	   │             └──▶ probes: is that life over?                                   │ applied
//	   └───────────────────────────────────────────────────────────────────────────────┤
//	                               address book, gossip, Host.Voters ◀── Configured ◀──┘
//
// The leader checks the voters when the host calls Look, but at most every 50 ms. It also checks
// them when the last step asks for it, and once a second.
//
// A configuration's number is the index of the log entry that made it; the higher number is the
// newer one. Package founding has the rules when a configuration counts. A configuration spreads in
// these ways:
//
//   - The log applies it (Configured).
//   - Gossip carries its number. An instance that knows a lower one asks the leader or a known
//     voter, and another one after two seconds.
//   - The leader tells the instances that it leaves out (Push), and those that are attached to it,
//     eight at a time.
//   - A member asks one address behind Join now and then.
//   - An instance that receives raft messages from a replica outside its configuration tells it the
//     configuration (RemovedPeer).
//
// An instance that needs to know whether it may stop, or the state of the voters, asks the leader
// (QueryStatus). Other instances answer with the leader's address. An instance that leaves asks in
// the same way (Departure), and so does a removed replica (Host.Removed, Dismissed).
//
// # Guarantees
//
// Gossip only supplies addresses to ask and to try. It never decides which instances vote, ends a
// session or a replica, or changes an address. Only the configuration decides which instance has a
// raft ID. An address changes only by a report of the instance itself on a connection that has
// proved its ID, by the log, or by a report of a voter. The highest life number wins, and an entry
// is removed only when its ID leaves the configuration. An older configuration never replaces a
// newer one.
//
// A step is carried out once. It is repeated only if the facts have changed, or after a second
// without effect. Answers to questions of an earlier term are ignored. Only a leader answers a
// StatusQuery, from a look at most 50 ms old.
//
// A life is known to have ended if its address refuses connections, or if another instance at this
// address proves its own ID. Silence, gossip, an unsigned refusal and another program at that
// address prove nothing. A replica is also over if its own instance has reported it on its own link
// (PeerLost).
//
// Instances find each other again after a partition of any length. Every five to ten seconds some
// of the missing addresses are tried, at most four at a time, forever: founders that were met,
// former members, and with Replicas also Join and the voters.
//
// An address that does not answer, answers slowly, or belongs to another program delays only the
// questions to itself. A lookup that never returns delays only itself.
//
// An instance that returns at another address is found behind its name within 12.5 seconds, or 1.25
// seconds without a leader, even if it finds no other instance itself.
//
// With Config.Records the owner stores a decision before it sends an answer, calls the Host or puts
// a question. Before gossip or the first answer it increments the life number, by which the others
// know the newest address of an instance. So all instances may return at new addresses at once, or
// at each other's.
//
// # Concurrency
//
// All methods of [Cluster] are safe for concurrent use. One owner goroutine holds the state. Others
// post to its inbox or read the view that it publishes. These goroutines exist:
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
// The owner blocks while Records saves, a few milliseconds on a healthy disk. Questions wait during
// that time, and are dropped after a second. The owner saves a few times in a life, and when the
// address of a voter has changed.
//
// Host is called on the owner goroutine. Late reports of an old life are dropped after its restart
// in place. QueryStatus waits on its caller's goroutine; the owner asks one question at a time for
// it.
//
// # Failure
//
// External problems never end an instance: missing answers, names that do not resolve, different
// settings, clocks that differ, two groups. They appear in Status.Waiting or in the log. Start
// fails only for a Config or a directory that cannot work. A directory cannot work if it cannot be
// read or written, is damaged, was refused, or belongs to another cluster or to another way of
// starting (Join). Close ends everything in every state, and may be called at any time. It waits
// for a Save that is under way, at most 5 s.
//
// If a directory fails later, the instance makes no new promise: it neither votes nor founds
// (DurableHost.Unsaved), leaves a charter that it could not store, and otherwise stays a member. A
// directory that is a copy, or was restored from an older one, excludes the instance permanently
// (DurableHost.Refused).
//
// # Limits
//
// There are four records: "identity" (label, name, life number), "birth" (founding.State), "book"
// (the address book) and "key" (the private key), each with a version byte and a CRC32C of its own,
// at most 2 MiB.
//
// At most eight questions of founding run at a time, one second each, one for each address. In
// addition there is one for each Prepare, probe and announcement under way; the replicas of a
// configuration bound their number. A removed peer is told once a second, and at most 64 in a
// second. A name and a zone have at most 128 bytes and an address 200 bytes. The addresses of 256
// former members are remembered.
//
// # Refused alternative
//
// Founding and finding voters by gossip alone. Gossip reports an instance as dead when it only
// cannot reach it, forgets it half a minute later, and repeats reports about third instances. A
// question that is answered by the very life that it concerns has none of these faults, and needs
// no time to converge.
package cluster
