// Package cluster says who is here, under which address, who founds the group, and who votes in it.
// It is one [Core] and its owner. The core puts those of founding, lead and voters together with
// the address book, and the simulation runs it too. The packages discovery, which knows where Join
// leads, and gossip stand beside it.
//
// Three things happen in it side by side. Questions go to addresses that Join resolves to until
// this instance belongs to a group that has a leader; package founding says to which, and what they
// decide is told to a [Host]. Package gossip spreads among the founders who is here, in which zone,
// at which address and in which group; with Replicas every instance is one. An instance
// that is no founder does not gossip. And founders that were lost are looked for, for ever.
//
// Where to look comes from Join: package discovery turns its entries into IP addresses and ports
// before birth sees them. What is found has the meaning that rule 3 gives it: no address is an
// answer, and blocks nothing; a lookup that failed blocks birth, by name. Addresses that were known
// stay worth asking meanwhile. Entries that lead to no instance, or to this one alone, are added to
// Waiting with the way out.
//
//	Net.Ask, Resolve, gossip's news, Answer, HasLeader, BornApplied ──▶ inbox ──▶ owner ──▶ Host
//	Configured, Retired, Look, Stray, Consult, Recover, Adopt               │
//	                                      questions, lookups, joins (helpers) ◀─────┴──▶ view (Status, Members, Voter, Report)
//
// A turn of the owner hands the core what has gathered, stores what Core.Tick has decided, tells
// the Host what Core.Follow makes of that, and starts what Core.Act asks for. The owner decides
// only how many questions are under way, and what is worth a line in the log.
//
// The life of an instance, Newborn → Bound → Member and back by a restart in place, is drawn in
// package founding.
//
// # Who votes
//
// Once the group is born, whoever leads it looks after its voters. The decisions are those of
// package voters; here they meet the world:
//
//	Host.Facts ──▶ Core.Act ──▶ step: Prepare             ──▶ a question to that instance ──▶ its founding.Core ──▶ its Host.Prepared
//	   ▲  Look()     │                AddLearner, Change,
//	   │             │                Transfer            ──▶ Host.Carry ──▶ the log
//	   │             └──▶ probes: is that life over?                          │ applied
//	   └──────────────────────────────────────────────────────────────────────┴──▶ Configured ──▶ address book, gossip, Host.Voters
//
// A look follows at once when the host says Look, then at most every 50 ms; also when the last step
// asks for one, and once a second.
//
// A configuration is known by its number, the index of the log entry that made it: of two the
// higher one is the newer. It counts if the log here has applied it, or if a voter or the leader
// has told it; package founding has the rule. It spreads in four ways. The log applies it
// (Configured). Gossip says its number, and an instance that knows a lower one asks the leader, or
// a voter that it knows, and another one after two seconds. The leader tells the instances that it
// leaves out (rule 14), and those that are attached to it, eight at a time. A member asks one
// address behind Join now and then. And an instance that hears raft from a replica that its
// configuration does not name tells it (Stray).
//
// Whoever wants to know whether it may stop, or how the voters stand, asks the leader (Consult).
// Who does not lead says who does. A replica that was removed goes on until the leader says that it
// may stop (Host.Removed, Dismissed), and an instance that leaves asks likewise (Departure).
//
// # Guarantees
//
// Gossip is advice. It names places to ask and addresses to try. It never decides which instances
// vote, ends a session or a replica, or moves an address. The address book leads from a raft ID to
// the instance and the address of its newest life. The configuration alone says which instance has
// a raft ID. An address moves by the instance's own word, on a connection that has proved its ID,
// by the log, or by a voter's word. The highest life number wins, and an entry goes only when the
// ID leaves the configuration. An older configuration never takes the place of a newer one.
//
// A step is carried out once. It is tried again only if the facts have changed, or after a second
// in which nothing came of it. What an earlier lead has asked means nothing to a later one. Only an
// instance that leads answers a consultation, by a look at most 50 ms old.
//
// A life is over if its address refuses connections, or if another instance proves there that it is
// another one. Silence is never taken for that, nor gossip, nor a refusal that is not signed, nor
// another program that listens there. A replica is over, too, when its own instance has said so on
// its own link (Gone).
//
// A cut of any length heals: some of the missing addresses (founders that were met, former members;
// with Replicas also Join and the voters) are tried every five to ten seconds, for ever, at most
// four at a time.
//
// One address that is silent, foreign or slow to resolve, and one entry whose lookup never returns,
// hold up nobody but themselves.
//
// An instance that comes back at another address is found behind its name within twelve and a half
// seconds, or one and a quarter while there is no leader, even if it finds nobody itself.
//
// With Config.Records every step is durable before anybody can know of it: the owner stores what
// birth has decided before it lets an answer out, calls the Host or puts a question. Before gossip
// or the first answer it counts up the life number, by which all others know the newest address of
// an instance; so all instances may come back at new addresses at once, or at each other's.
//
// # Concurrency
//
// All methods of [Cluster] are safe for concurrent use. One owner goroutine holds the state;
// everybody else posts to its inbox, a slice that is swapped whole, or reads the view that it
// publishes. These goroutines exist:
//
//	owner       by Start            owns everything; woken by its inbox and one timer; ended by Close
//	helpers     by the owner        one per question, lookup, gossip join and goodbye under way; each bounded in time, ended by Close.
//	lookups     by helpers          one per entry of Join under way, see discovery.Attempt: its context ends after two seconds and
//	                                with Close. If it takes no notice (Config.JoinFunc, a file on a dead disk), Close goes on
//	                                without it a second later
//	gossip      by gossip.Start     its own, see that package; ended by Close
//
// The owner blocks while Records saves, some milliseconds on a sound disk; questions then wait, and
// are silent after a second. It saves a handful of times in a life, and when a voter has moved.
//
// Host is called on the owner goroutine. What an old life still reports after its restart in place
// is dropped. Consult waits on its caller's goroutine for what the owner asks, one question at a
// time.
//
// # Failure
//
// Everything that can go wrong outside (nobody answers, a name does not resolve, settings differ,
// clocks disagree, two groups) is a sentence in Status.Waiting or a line in the log, never an error
// that ends anything. Start fails only for a Config that cannot work, or a directory that cannot be
// read or written, is damaged, belongs to another cluster or another way of starting (Join), or was
// refused. Close ends everything, in every state, and may be called at any time; it waits for a
// Save that is under way, at most 5 s.
//
// A directory that fails later does not end the instance: it promises nothing new, neither votes
// nor founds (DurableHost.Unsaved), leaves what it was bound to in vain, and is a member otherwise.
// A directory that is a copy, or was restored from an older one, ends its part for good
// (DurableHost.Refused), at this start and at all later ones.
//
// # Limits
//
// Three records: "identity" (label, name, life number), "birth" (founding.State) and "book" (the
// address book), each with a version byte and a CRC32C of its own, at most 2 MiB.
//
// Eight questions of birth at a time, one second each, and one to an address; beside them one for
// each Prepare, probe and announcement under way, whose number the replicas of a configuration
// bound. A stray is told once a second, 64 of them in a second. A name and a zone have at most 128
// and an address 200 bytes, as in gossip. The addresses of 256 former members are remembered.
// Packages discovery and gossip have limits of their own.
//
// # Refused alternative
//
// Founding and finding voters by gossip alone. Gossip says that somebody is dead when it merely
// cannot reach him, forgets him half a minute later, and believes what others say about a third; a
// question that is put directly and answered by the one life it is about has none of these faults,
// and needs no time to converge.
package cluster
