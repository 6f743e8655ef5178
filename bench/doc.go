// Command bench compares mortise with other distributed locks: etcd, ZooKeeper, NATS, Redis,
// PostgreSQL and Olric. It is a separate module, so that users of mortise do not depend on its
// packages.
//
//	cd bench && go run . [-quick] [-only REGEXP] [-peers NAME,...] [-out DIR]
//
// measures everything and prints a page like docs/SPEED.md, or writes the page and a picture to
// DIR. A full run takes about half an hour; -quick measures four workloads of the best known peers
// in a minute. It needs Linux. A peer that is not installed is reported and omitted. With -install,
// as root, the benchmark first installs the peers from Debian.
//
//	go run . -against PROGRAM [-named TEXT] [-rounds N] [-only REGEXP] [-peers NAME,...]
//
// compares this build with PROGRAM, which is the benchmark built at another commit. In each round
// the two builds measure a peer directly after each other. The benchmark prints the ratios of their
// results (see against.md) with 95 % intervals (ratio.go), and fails if the interval of a rate does
// not reach 0.97. ../scripts/compare builds the other program.
//
//	go run . -budget [-peers NAME,...]
//
// prints what one lock costs (see budget.md): wake-ups, system calls and running time of each kind
// of goroutine in each of the three instances, allocations, bytes, and the way of a Lock hop by hop
// (hops.go). It reads the execution trace of the Go runtime.
//
//	go run . -budget -callers N [-peers NAME,...] [-time DURATION]
//
// prints the share of the time for which each goroutine of the three instances runs under N
// callers, the busiest first, and names the limit (busy.go).
//
// # How it measures
//
// The benchmark starts each peer (peer.go) itself, on free loopback ports and in a temporary
// directory, and measures it in a separate process (child.go). The user of a lock has three
// instances: three nodes of mortise, three embedded members of etcd, NATS or Olric with a client
// each, or three clients of external servers. A workload (workload.go) is measured for some time
// after a warm-up. A round runs all workloads of one peer, then those of the next peer; there are
// several rounds (rounds.go). A cell of a table contains the median of the rounds, field by field.
//
// Before it begins, the benchmark waits up to a minute until other processes use little processor
// time. During every run it measures the processor time of other processes. The page shows both
// results.
//
// The rows about many instances (coldstart, beside, sessions, storm, line) exist for mortise only.
// Ten thousand sessions run in separate processes with 4,000 sessions each (crowd.go). Such a
// session is a client and a port that does not listen, with its own connection and ID (light.go).
// Each of the three members is also a separate process, so that the leader's memory and processor
// time can be measured (storm.go). These rows need 3 GB of memory, and 20,000 open files in a
// process.
//
// Every workload in which callers share keys fails if two callers hold one key at the same time.
//
// The tests start every installed peer. The tests are not part of test.sh, because building etcd
// takes long. To run them: cd bench && go test ./...
//
// # What is fair
//
// Only ratios within one run are meaningful, because every peer shares the processors with its
// callers and its servers. etcd is measured in process, as mortise runs, and by gRPC, as most users
// run it. A durable mortise (Dir) is compared with an etcd that syncs, and mortise in memory with
// an etcd that does not sync. Redis is polled every 5 ms, which favours Redis, because redsync's
// default interval is much longer. NATS has no lock of its own: the benchmark creates a key of a
// JetStream bucket, and watches it while another caller holds it (natslock.go). No call locks a key
// on the instance that has just unlocked it, except in the workload relock and in those about
// sticky locks (again.go).
//
// # Limits
//
// Everything runs on one machine: the network takes no time, and three members share one disk. The
// benchmark cannot find out whether a waiter is in the queue, so the workload gives the waiters two
// seconds to enter the queue. In the workload line, each waiter is in the queue of its key before
// the next request for that key is sent.
package main
