// Package sim runs whole clusters of mortise on one goroutine, from one seed. It puts the real cores together as the root package does,
// birth and the address book of cluster, raftlog with etcd's raft, both cores of session, lockfsm, and gives them everything else: clocks
// that drift, a network that delays, drops, repeats, reorders and cuts, disks that lose what was not synced, processes that crash, pause,
// move and come back, and callers that lock, try, cancel, hold too long and leave.
//
// # Guarantees
//
// One seed is one run: Run with the same Config gives the same Report.Hash, provided that crypto/rand, from which raft draws its election
// timeouts, was seeded too (testing/cryptotest.SetGlobalRandom). The checkers watch from outside, in one global time that no core can see:
// they never ask a core whether it believes that all is well.
//
// # What stands for what
//
//	machine   a name, an address, a boot-time clock and a wall clock, perhaps a disk; what a process is started on
//	proc      a process: what a mortise.Node holds, from Start until it ends
//	actor     the goroutine that owns a core: an inbox, a turn, one timer
//	replica   a voter: the log's core, its state machine, its keeper; as replica.go in the root package
//	network   streams between processes in place of the transport: ordered, late, and broken at each end by itself
//	watch     the checkers and the recorded history
//
// The glue between the cores is written again here, since that of the root package is made of goroutines. Where the two differ a bug of
// that glue can hide; the tests of whole nodes in the root package are for those.
//
// # Concurrency and failure
//
// A run is not safe for concurrent use, and since raft's random source is one per process, runs in one process must follow each
// other. A broken rule ends the run with Report.Fault and the last events in Report.Transcript.
//
// # Limits
//
// Gossip, gRPC, files and TLS are stand-ins here, as are people. A voter is not replaced yet, so a group in memory mode that
// has lost its majority is founded anew.
//
// # Refused alternative
//
// Whole nodes in a synctest bubble as the only simulation: they are needed too, for shells, but a bubble is not repeatable, and a thousand
// times slower.
package sim
