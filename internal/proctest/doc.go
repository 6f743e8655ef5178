// Package proctest tests mortise in separate processes, each on its own machine: a network
// namespace with an address. The tests kill instances, let them leave, cut them off, move them and
// start them again, while all instances take and hold locks. The package contains only tests;
// proctest/instance is the program that the machines run. scripts/proctest runs the tests. The
// tests need root and the command ip, and without these they are skipped with a message.
//
// # What a scenario is
//
// A scenario is a [testing] function that makes a world, starts instances in it, causes faults, and
// ends with a verdict. Each instance has a load: it locks a contended key and its own key, calls
// TryLock, cancels calls of Lock that wait, holds three locks for its whole life, and probes: it
// repeatedly takes and releases a new key. At the end of every scenario the world
//
//   - waits until every running instance is ready, within the time that the scenario allows;
//   - makes the instances release all locks and stop, and judges the histories of all instances
//     together with package history: one holder at a time, rising tokens over restarts and groups,
//     grants in the order of the requests, and no instance that believes it holds the lock of
//     another;
//   - fails if an instance has lost a lock although it was neither killed nor cut off;
//   - prints for every departure how long no free lock was granted, and fails if that is more than
//     five times the goal.
//
// # Machines and cuts
//
// All machines of a world are connected to one bridge in a namespace of its own, and have no route
// out of it. To cut a link in one direction, the test sets the receiver's hardware address in the
// sender's neighbor table to an address that no machine has. The sender's packets are then lost
// without an error, as behind a firewall that drops them. Each world has a name server, whose
// answers the test sets.
//
// In worlds with an air the machines have TUN devices, and the test process carries the packets
// between these devices. It delays the packets and loses some of them, so the kernel needs no
// netem. TCP is still the kernel's.
//
// Gossip, queries and links share one port, so no firewall can distinguish them, but they do not
// share connections. So where a test cuts connections of one kind, each instance is reached through
// a forwarder, which reads the first request on each connection (kinds_test.go). The requests about
// founding and about changes of voters use the connections of gossip, so they are cut together with
// gossip.
//
// # Guarantees
//
// Namespaces are named mt<pid>-<start>-<world>-<machine>, so several runs do not conflict. The
// namespaces are removed at the end of a run. If a run does not finish, the next run removes the
// namespaces and the processes in them. Nothing else of the system is changed, except that the
// scenarios of large fleets raise the limit of the neighbor table while they run.
//
// # Concurrency
//
// A world belongs to one test. Two tests run at a time by default, because a small machine allows
// no more.
//
// # Failure
//
// A scenario that fails prints the last status of every instance and the end of its log. With go
// test -artifacts the logs and histories are kept.
//
// # Limits
//
// A run cannot be repeated exactly. Limits in real time are multiplied by five, and the measured
// times are printed. All instances share one wall clock; the simulation tests clock drift.
//
// # Refused alternative
//
// Firewall rules could make the same cuts, but need one more program, nft. A switch in user space
// over TUN devices could also delay and lose single packets in all worlds, but every packet would
// then pass through one more process of a machine with few processors. So only the worlds with an
// air use such a switch.
package proctest
