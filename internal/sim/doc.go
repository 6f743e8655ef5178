// Package sim runs whole clusters of mortise on one goroutine, from one seed. It runs the cores
// that ship: those of cluster, raftlog with etcd's raft, both ends of session, internal/replica and
// lockfsm. It simulates everything else: drifting clocks, a network that delays, drops, repeats and
// cuts, disks that lose what was not synced, processes that crash, pause, move, leave and come
// back, callers, and operators.
//
// [Draw] makes a [Config] from a seed, [Run] runs it and returns a [Report]; [DrawFounding] and
// [RunFounding] do so for runs about founding alone. A [Campaign] runs many seeds, and reports the
// command that repeats one that fails.
//
// # The picture
//
//	world: the one true time, what is due,                watch: the judges of internal/check,
//	   |   the one source of chance                       the history; it is told what is asked,
//	   | lets things happen, in order                     granted, lost, applied     ^
//	   v                                                                           |
//	machine n0                                            machine n1, n2, ...      |
//	+--------------------------------------------------+                           |
//	| boot-time clock, wall clock, address, disk       |     the nemesis crashes, pauses,
//	|                                                  |     moves and cuts them off
//	|                                                  |
//	| proc, perhaps: what runs there now               |
//	| +----------------------------------------------+ |
//	| | call ----> client <---+                      | |
//	| |              ^        | frames               | |     network
//	| |              |        +-------------------------------- stream ---- proc on n1
//	| |              |        |                      | |
//	| |            keeper <---+                      | |
//	| | replica:     ^        |                      | |
//	| |              v        |                      | |
//	| |             log <-----+                      | |
//	| |                                              | |
//	| | cluster: founding, and queries - - - - - - - - - - - address ---- proc on n2
//	| +----------------------------------------------+ |
//	+--------------------------------------------------+
//
// Client, keeper, log and cluster are actors: each stands for a goroutine that owns a core. Only
// functions in its inbox reach it, and its next turn runs them all. So the world's schedule alone
// orders what the actors do.
//
// # What stands for what
//
//	machine   what a process is started on: a name, an address, two clocks, perhaps a disk
//	proc      a running instance, and what arrives at it; settings.go has what it was started with
//	actor     a goroutine that owns a core: an inbox, a turn, one timer;
//	          inbox.go has how the log speaks to the others
//	owner     the owner of the cluster's core: a cluster.Owner. In gossip.go and
//	          ask.go instances find and query each other
//	replica   the owner of the log's core: a raftlog.Shell and a replica.Host.
//	          snapshot.go has its snapshots
//	keeping   the owner of the keeper's core, with its keeper.Outlets
//	client    the owner of the client's core: its client.Outlets. caller.go has the
//	          callers, kinds.go what they ask for
//	options   what callers want of a hold besides; steps.go has what operators do to holds of
//	          others: new kinds of either go there
//	leave     Node.Leave: it takes the steps of a cluster.Departure
//	network   streams between processes in place of the transport: ordered, late, and broken
//	          at each end by itself; dial.go opens them
//	nemesis   what goes wrong; faults.go has what operators do on purpose, such as a rolling
//	          restart, and faults that come in a row
//	insider   a process that has the secret and an identity of its own, and lies
//	operators they call Recover where a majority of the disks is lost
//	watch     the checkers and the recorded history: watchlog.go for groups and logs,
//	          watchvoters.go for voters, watchholds.go for ends by force
//	          and by themselves, delays and notices
//
// The cores decide, and they fix the order of a turn and of a departure. Two things are written
// here a second time, beside internal/instance: how an instance starts, stops and forgets a replica
// (owner.go), and which owner gets a frame (proc.go). The tests of whole nodes in internal/e2e
// check those.
//
// # Guarantees
//
// One seed is one run: Run with the same Config gives the same Report.Hash, provided that
// crypto/rand, from which raft draws its election timeouts, was seeded too
// (testing/cryptotest.SetGlobalRandom). The checkers watch from outside, in one global time that no
// core can see, and never ask a core.
//
// In every other pair of runs callers also share locks, take permits, want several keys at once and
// ask for more under a lock that they hold, so that they wait for each other in circles. A refused
// call releases everything and begins again.
//
// In two runs of every four callers also want a hold that ends by itself, one that leaves a delay
// when its session expires, and a notice when another call waits. Operators end holds by force,
// also some that are long over. For the judges such a hold is over at once, whatever its holder
// believes; the holder must be told, and so must one whose time is over.
//
// In four runs of every sixteen, and in every fourth founding, an insider lies to the instances
// that have a group: about the configuration, the leader, sessions of others, which it attaches and
// opens, and replicas that are over, and by gossip. All judges require what they require without
// it. It does not lie to instances without a group and is no candidate for a vote: a process that
// has the secret is trusted with these two.
//
// In eight runs of every sixteen instances may start with other budgets, and after healing the
// group must have adopted what all name.
//
// An instance with a disk leaves a founded group only if operators have given the group up.
//
// After healing the configuration must become the one that the rules ask for, and stay so. In a
// quiet run no group is founded while the one before has a majority.
//
// # Concurrency
//
// Runs in one process must follow each other, since raft's random source is one per process.
//
// # Failure
//
// A broken rule ends the run with Report.Fault, and with the last events in Report.Transcript if
// Config.Verbose is set. A panic on a turn of an actor is a broken rule.
//
// # Limits
//
// Gossip, gRPC, files and TLS are stand-ins. Gossip, except the insider's, shows every instance
// that can be heard as it is now. A queue to a peer is full by chance, not because the peer is cut
// off. A disk is slow, but does not hang or fail. Wall clocks differ by no more than founding
// allows, and do not jump. Only the budgets change of all settings, and all builds are the same.
// With Replicas every instance that leaves comes back, since all are needed for a new group; with
// Founders only instances without a vote that are no founders leave for good.
//
// # Refused alternative
//
// Whole nodes in a synctest bubble as the only simulation. They are needed too, for shells, but a
// bubble is not repeatable, and a thousand times slower.
package sim
