// Package sim runs whole clusters of mortise on one goroutine, from one seed. It puts the real cores together as the root package does,
// that of cluster, raftlog with etcd's raft, both cores of session, lockfsm, and gives them everything else:
// clocks that drift, a network that delays, drops, repeats and cuts, disks that lose what was not synced, processes that crash, pause,
// move, leave and come back, callers that lock, try, cancel and hold too long, and people who restart, add and take away instances
// and give up a group whose disks are lost.
//
// [Draw] makes a [Config] from a seed, [Run] runs it and returns a [Report]; [DrawBirth] and [RunBirth] do so for runs that are about
// founding alone. A [Campaign] does it for many seeds, and says which command repeats one that fails.
//
// # The picture
//
//	world: the one true time, what is due, the one source of chance              watch: the judges of internal/check, the history
//	   | lets things happen, in order                                              ^ is told what is asked, granted, lost, applied
//	   v                                                                           |
//	machine n0                                            machine n1, n2, ...      |
//	+--------------------------------------------------+                           |
//	| boot-time clock, wall clock, address, disk       |     the nemesis crashes, pauses, moves and cuts them off
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
//	| | cluster: birth and its questions - - - - - - - - - - - address ---- proc on n2
//	| +----------------------------------------------+ |
//	+--------------------------------------------------+
//
// Client, keeper, log and cluster are actors: each stands for a goroutine that owns a core. Whatever reaches one is a function in its
// inbox, and its next turn, a moment later or when the process goes on, runs them all. That is the only way in, so what the actors do
// is ordered by the world's schedule and by nothing else.
//
// # What stands for what
//
//	machine   a name, an address, a boot-time clock and a wall clock, perhaps a disk; what a process is started on
//	proc      a process: what a mortise.Node holds, from Start until it ends
//	actor     the goroutine that owns a core: an inbox, a turn, one timer
//	client    the shell of the session's client; caller.go has those who call it, kinds.go what they ask for
//	wishes    what callers want of a hold besides; steps.go has what people do to holds of others: new kinds of either go there
//	life      the shell of cluster's core, and life.go in the root package; gossip.go has how instances find each other, ask.go their questions.
//	          voting.go is that of the root package
//	replica   a voter or a learner: the log's core, the keeper's, and between them that of
//	          internal/replica, which glue.go connects; keeping.go has the keeper, snapshot.go how a
//	          snapshot is taken, retold.go what the instances are told of the group's settings
//	leave     leave.go in the root package
//	network   streams between processes in place of the transport: ordered, late, and broken at each end by itself; dial.go opens them
//	nemesis   whoever does bad things; blows.go has those that people do on purpose, such as a rolling restart, and those that come in a row
//	insider   a process that has the secret and an identity of its own, and lies
//	people    whoever calls Recover where a majority of the disks is lost
//	watch     the checkers and the recorded history; watchlog.go has what they see of groups and logs, watchvoters.go of who votes, watchholds.go
//	          of ends by force and by themselves, delays and notices
//
// What life, voting and leave do is written again here, since the shells of the
// product are made of goroutines. Where the two differ a bug can hide; the tests of whole nodes in the
// root package are for those.
//
// # Guarantees
//
// One seed is one run: Run with the same Config gives the same Report.Hash, provided that crypto/rand, from which raft draws its election
// timeouts, was seeded too (testing/cryptotest.SetGlobalRandom). The checkers watch from outside, in one global time that no core can see:
// they never ask a core whether it believes that all is well.
//
// In every other pair of runs callers also share locks, take permits, want several keys at once and ask for more under a lock that they hold, so that
// they wait for each other in circles: whoever is refused gives back all that he holds and begins again.
//
// In two runs of every four callers also want a hold that ends by itself, one that leaves a delay when its session expires, and to be told when somebody
// waits, and people end holds by force: some that are long over, so that the key is another's. A hold that was ended by force is over for the
// judges from then on, whatever its holder believes until he hears of it; its holder must be told so, and so must one whose time is over.
//
// In four runs of every sixteen, and in every fourth birth, an insider lies to the instances that have a group: about the configuration,
// whose numbers and voters it makes up, about who leads, about sessions of others, which it attaches and opens, about replicas that are
// over, and by gossip. All judges hold what they hold without it, after healing too. It does not lie to instances without a
// group and is no candidate for a vote: with these two whoever has the secret is trusted.
//
// In eight runs of every sixteen instances that start are told other budgets from time to time, and
// after healing the group must have adopted what all name.
//
// An instance with a disk leaves a group that is born only if people have given the group up.
//
// After healing, beside the rest, the configuration must become the one that the rules ask for, and stay so. In a quiet run, where machines are
// only restarted, no group is founded while the one before has a majority.
//
// # Concurrency
//
// A run is not safe for concurrent use, and since raft's random source is one per process, runs in one process must follow each other.
//
// # Failure
//
// A broken rule ends the run with Report.Fault, and with the last events in Report.Transcript if Config.Verbose asks for them; a Campaign
// runs a seed that fails once more for that. A panic on a turn of an actor is a broken rule.
//
// # Limits
//
// Gossip, gRPC, files and TLS are stand-ins here, as are people. Gossip always tells the present truth about whom it can hear, the insider beside; a queue to
// a peer is full by chance, and not because the peer is cut off; a disk is slow, but does not hang or fail; wall clocks differ by no
// more than birth bears, and do not jump. The budgets are the only settings that change, and all builds are the same one. With Replicas
// whoever goes comes back, since all are needed for a new group; with Founders only others than founders go for good, and they have no vote.
//
// # Refused alternative
//
// Whole nodes in a synctest bubble as the only simulation: they are needed too, for shells, but a bubble is not repeatable, and a thousand
// times slower.
package sim
