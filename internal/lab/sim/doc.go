// Package sim runs whole clusters of mortise on one goroutine, from one seed. It runs the real
// cores of cluster, raftlog (with etcd's raft), session/client, session/keeper, internal/replica
// and lockfsm. It simulates everything else: drifting clocks, a faulty network, disks that lose
// data that was not synced, processes that crash, pause, move to another address, leave and start
// again, callers, and operators.
//
// [Draw] returns the [Config] of a seed, and [Run] runs it and returns a [Report]. [DrawFounding]
// and [RunFounding] do the same for runs that only test the founding of a group. A [Campaign] runs
// many seeds.
//
// # The picture
//
//	world: the one true time, what is due,                watch: the judges of internal/lab/check,
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
// Client, keeper, log and cluster are actors. An actor simulates a goroutine that owns a core.
// Other actors reach it only by functions in its inbox, and its next turn runs all of these
// functions. The order of all turns therefore depends only on the schedule of the world.
//
// # What stands for what
//
//	world     time, chance and notes, which all parts share
//	machine   a name, an address, two clocks, perhaps a disk; host.go starts and ends the process
//	          that runs on it, and fleet.go has all machines
//	records   what the watch can see of a process: its life, its sessions, its calls, its replica.
//	          The parts that act hold these records
//	network   links that are cut, and late frames. port.go has the streams between processes,
//	          in place of the transport: ordered and late, and each end may close separately
//	proc      a running instance, what arrives at it, and the owner of the cluster's core: a
//	          cluster.Owner. gossip.go simulates gossip, opened.go the sessions that programs open,
//	          as with Node.NewSession, and leave.go Node.Leave, by the steps of a cluster.Departure
//	actor     a goroutine that owns a core: an inbox, a turn, one timer
//	replica   the owner of the log's core: a raftlog.Shell and a replica.Host; and the owner of
//	          the keeper's core, with its keeper.Outlets
//	client    the owner of the client's core of one session and of its stays: their Outlets
//	caller    one call; draw.go draws its request and its options. Add new kinds and options there
//	nemesis   the faults, also actions of operators, such as a rolling restart, and series of
//	          faults
//	insider   a process that has the secret and its own identity, and sends false messages
//	operators they call Recover when a majority of the disks is lost. steps.go has their actions on
//	          holds, onlookers.go what is asked of leaders: holds, IDs, and data under a hold, and
//	          settings.go the settings with which instances start
//	watch     the checkers and the recorded history: watchcalls.go for calls and what their callers
//	          believe, watchkept.go for stays, watchlog.go for logs, watchvoters.go for groups and
//	          voters; watchleases.go emits the lease steps of model/lease.pml
//	replay    the faults of an earlier run, some of which are left out; shrink.go finds
//	          those that a failure needs, and page.go shows the run
//
// Two pieces of logic of internal/instance are written a second time in this package: starting,
// stopping and deleting a replica, and passing a frame to the right owner (both in proc.go). The
// tests of whole nodes in internal/lab/e2e check the originals. What tells all sessions of a
// process of an event is client.Set in both.
//
// # Guarantees
//
// A run is repeatable: Run with the same Config gives the same Report.Hash. For that, crypto/rand
// must be seeded with testing/cryptotest.SetGlobalRandom before the run, because raft draws its
// election timeouts from it. The checkers observe the run in one global time that no core can read,
// and do not trust what a core reports about itself.
//
// In two of every four runs, callers also use shared locks, permits of semaphores and requests
// for several keys, and make calls while they hold a lock, so that deadlocks occur.
//
// In two of every four runs, partly the same ones, callers also request holds that end by
// themselves, holds with an expiry delay, and notices of waiters. Operators end holds by force. A
// holder must be notified when its hold was ended by force or has ended by itself.
//
// In about half of the runs, programs open sessions of their own, when they start, and beside and
// after each fault, and close some of them. A session must not lose a lock because another one has
// ended, and after healing each one that is open must be attached.
//
// In about half of the runs, callers also ask for passes, and a caller that had one often asks for
// the same key again. A pass is judged like any other grant. In addition, its token must be one
// that the state has reserved for the stay. The calls of one process must get their passes in the
// order in which they were made. The state must not end a stay for an order that names the token
// of a pass, and must not resume a stay.
//
// In four of every sixteen runs, and in every fourth founding, an insider sends false messages to
// the instances that have a group. The judges apply the same rules in these runs, except that a
// voter without a disk may leave its group.
//
// In eight of every sixteen runs, instances may start with changed budgets. After healing, if all
// instances name the same budgets, the group must have adopted them.
//
// An instance with a disk may leave a founded group only if operators have given up the group.
//
// After healing, the configuration must become the one that the rules require, and must then not
// change. In a quiet run, no group may be founded while the previous group has a majority.
//
// The network delays messages (for longer than a lease), drops and repeats them, and cuts links,
// between some pairs or all, in one or both directions. Disks lose what was not synced, or hang for
// a minute. Processes are killed, lose power, pause, leave, and come back at the same, new and
// swapped addresses. Answers of an earlier incarnation come late, and orders of a leader by a
// minute. A group without directories must not be given up while its replicas can still elect a
// leader.
//
// # Concurrency
//
// Do not run two simulations concurrently in one process, because raft's random source is global.
//
// # Failure
//
// When a rule is broken, the run ends and Report.Fault names the rule. If Config.Verbose is set,
// Report.Transcript has the last events. [Shrink] finds the faults that a failure needs. A panic on
// a turn of an actor is a broken rule.
//
// # Limits
//
// Gossip, except that of the insider, shows the present state of every reachable instance. Whether
// a queue to a peer is full is random and does not depend on the links. A disk may be slow, and may
// hang while it takes a snapshot, but does not fail. Wall clocks differ by no more than founding
// allows, and do not jump. The
// budgets are the only settings that change, and all instances run the same version. If
// Config.Founders is set, only instances that are not founders may stay away until the end of the
// run.
//
// # Refused alternative
//
// A synctest bubble with whole nodes cannot be the only simulation, because a bubble is not
// repeatable, and is a thousand times slower.
package sim
