// Package proctest tests mortise in separate processes, each on its own machine: a network
// namespace with an address. The tests kill, restart, move and cut off instances that take and hold
// locks. The package contains only tests; proctest/instance is the program that the machines run.
// scripts/proctest runs the tests. Without root and the command ip, the tests are skipped.
//
// # What a scenario is
//
// A scenario is a [testing] function that makes a world, starts instances in it, causes faults, and
// ends with a verdict. Each instance has a load: it locks a contended key and its own key, and two
// more such keys with LockSticky. It calls TryLock, cancels calls of Lock that wait, holds
// three locks for its whole life, and repeatedly takes and releases a new key (a probe). At the end
// of every scenario the world
//
//   - waits until every running instance is ready, within the time that the scenario allows;
//   - makes the instances release all locks and stop, and judges the histories of all instances
//     together with package history: one holder at a time, rising tokens over restarts and groups,
//     grants in the order of the requests, and no two instances that use one lock;
//   - prints the longest wait for a sticky lock, and fails if it exceeds five times a TTL and a
//     failover;
//   - fails if an instance has lost a lock although it was neither killed nor cut off;
//   - prints for every departure how long no free lock was granted, and fails if this time exceeds
//     five times the goal.
//
// The scenarios:
//
//   - rolling deploys of 3, 5 and 9 instances, with and without surge, with Leave and with SIGKILL;
//   - losses of voters, also of all at once; growth from one to nine instances and back;
//   - changes of founders and of the version;
//   - every kind of network cut, foundings in every partition, gossip and links cut separately;
//   - an instance that keeps sticky locks is killed, stopped for longer than its lease, or receives
//     nothing;
//   - name servers that return only the address of the instance that asks, no address, or addresses
//     of lost machines.
//
// # Machines and cuts
//
// All machines of a world are connected to one bridge in a namespace of its own. To cut a link in
// one direction, the test sets a wrong hardware address of the receiver in the sender's neighbor
// table. The sender's packets are then lost without an error. Each world has a name server, whose
// answers the test sets.
//
// A world can have an air: a network that delays and loses packets (air_test.go). Its machines
// have TUN devices, and the test process carries the packets between them. So the kernel needs no
// netem.
//
// Gossip, queries and links share one port, but not their connections. Where a test cuts
// connections of one kind, each instance is reached through a forwarder, which reads the first
// request on each connection (kinds_test.go). The requests about founding and about changes of
// voters use the connections of gossip.
//
// # Guarantees
//
// Namespaces are named mt<pid>-<start>-<world>-<machine>, so several runs do not conflict. They are
// removed at the end of a run, or by the next run, with the processes in them. Nothing else of the
// system is changed, except that scenarios of large fleets raise the limit of the neighbor table.
//
// # Concurrency
//
// A world belongs to one test. By default two tests run at a time.
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
// Firewall rules could make the same cuts, but need one more program, nft. TUN devices in all
// worlds would pass every packet through one more process.
package proctest
