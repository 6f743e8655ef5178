// Package proctest tests mortise as it is run: processes of their own, each on a machine of its own
// (a network namespace with an address), that are killed, leave, are cut off, move and come back
// while all of them take and hold locks. Only its tests matter; proctest/instance is the program
// that the machines run. scripts/proctest runs it: root and the command ip are needed, and it says
// loudly if it cannot.
//
// # What a scenario is
//
// A [testing] function that makes a world, starts instances in it, does something to them and ends.
// Each instance has a load: a key that all want, a key of its own, tries, waits that are given up,
// three locks that it holds for as long as it lives, and a probe that takes and frees new keys all
// the time. At the end of every scenario the world
//
//   - waits until every instance that lives is ready, within the scenario's bound;
//   - has them give back everything and stop, and judges the histories of all lives together
//     (package history): one holder at a time, rising tokens over restarts and groups, first come
//     first served, no belief in a lock that is another's;
//   - looks for locks that were lost by an instance that was neither killed nor cut off: there must
//     be none;
//   - prints for every departure how long a free lock could not be had, and compares it with
//     five times the goal.
//
// # Machines and cuts
//
// All machines of a world hang on one bridge in a namespace of its own; none has a way out. A link
// is cut in one direction by pointing the sender's neighbour entry at no machine: what it sends is
// lost in silence, as behind a firewall that drops. Names are answered by a name server of the
// world's own, which the test tells what to say.
//
// In worlds with an air the machines hang on TUN devices, and the test process carries the packets
// between them: it delays them and loses some, which needs no netem in the kernel. TCP is the
// kernel's own.
//
// Gossip, questions and links share one port, and no firewall can tell them apart. They do not
// share connections, though: so where one kind is to be cut, each instance is reached through a
// forwarder that looks at the first request on each connection (the file kinds_test.go). What goes
// with gossip there is the questions of birth and of changes of voters, since they use the same
// connections.
//
// # Guarantees
//
// Namespaces are called mt<pid>-<start>-<world>-<machine>: several runs do not meet. They are
// removed at the end, and those of a run that has died at the next start, with the processes in
// them. Nothing else of the system is touched, but that the scenarios of large fleets raise the
// limit of its table of neighbors while they run.
//
// # Concurrency
//
// A world belongs to one test. Tests run two at a time, since a small machine allows no more.
//
// # Failure
//
// A scenario that fails prints what every instance last said of itself and the end of its log; go
// test -artifacts keeps logs and histories.
//
// # Limits
//
// Nothing here is replayable. Times are asserted five times over and printed. Wall clocks are one
// clock; drift is for the simulation.
//
// # Refused alternative
//
// Firewall rules (nft) do the same cuts, and are one more thing to install. A switch in user space
// over TUN devices could also delay and lose single packets, and every byte would go through one
// more process of a machine that is short of processors. So only the worlds with an air have one.
package proctest
