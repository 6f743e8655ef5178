// Package mortisetest gives tests a real cluster: whole nodes of package mortise in one process, on
// a network in memory. Each event of a cluster's life, such as a crash or a cut network, is one
// call.
//
//	func TestMyWorkerStops(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			cluster := mortisetest.New(t, 3)
//			go work(cluster.Node(0)) // the code under test
//			cluster.AwaitHolder("orders/42", 0)
//			cluster.Lose(0) // its lock is lost: does it stop?
//
// # Which test needs what
//
//	what the code does under a lock           a locker.Local, if the code takes a locker.Locker
//	a fake or an adapter of your own          package locker/lockertest checks it
//	that the code uses the node correctly     New(t, 1), ready in milliseconds; or mortise.Start
//	                                          with an empty Config, on a real socket
//	a lost lock, a dead process, a cut
//	network, a clock that leaps               New(t, 3)
//	the same for hours, and quickly           New(t, 3) inside a testing/synctest bubble
//	a disk, a kernel, a real network          real processes, not this package
//
// # What can happen
//
//	[Cluster.Lose]                        a holder loses its locks and notices at once
//	[Cluster.Pause], [Cluster.Resume]     a process is stopped and goes on: a holder that has not
//	                                      noticed the loss of its lock
//	[Cluster.Kill], [Cluster.Start]       a process dies without closing its session; it restarts
//	[Cluster.Isolate], [Cluster.Cut],
//	[Cluster.CutOneWay], [Cluster.Heal]   a network is cut, silently, and healed
//	[Cluster.Leap], [Cluster.Drift]       a machine sleeps; its clock is fast or slow
//	mortise.Node.Leave                    a process ends in good order; Start starts it again
//	mortise.Node.ForceUnlock              an operator ends a hold
//
// [Cluster.Leader] and [Cluster.Follower] select the node. [Cluster.Await], [Cluster.AwaitHolder],
// [Cluster.Ready] and [Cluster.Until] wait for the result, so no test needs an arbitrary sleep.
//
// An Example cannot run in a bubble, so the examples here take real time. scenario_test.go shows
// the tests of a service in fake time: TestMyWorkerStopsWhenItsLockIsLost and
// TestMyPausedWorkerIsRefused have a worker, a store that compares tokens, and a lock that is lost
// in four ways.
//
// # Inside and outside of a bubble
//
// Everything works in both, without a setting. Inside, time is that of the bubble: three nodes
// start and close in about 30 ms, and an hour costs about three seconds; with the race detector
// both take much longer. Outside, three nodes are ready in about a second, and a test takes as long
// as its events. After Kill, Pause and Isolate the next grant comes when the SessionTTL of the
// holder, 2 s, has passed. Lose needs no waiting.
//
// Go's race detector (1.26, golang.org/issue/78156) can crash in a bubble when goroutines fire
// timers on several processors at once: the process ends with SIGSEGV, or with "ThreadSanitizer:
// CHECK failed", and no race is reported. It is rare, and go test -race -cpu=1 is free of it.
//
// # Guarantees
//
//   - The nodes run the code of package mortise, with its gossip, its Raft and its gRPC. Only the
//     network, the boot-time clock and the name lookup are replaced, through no exported name of
//     the root package.
//   - The test fails at its end if a running node holds a lock or a call waits for one
//     ([Options].MayHold), if a node does not close, or if one of its goroutines remains. Unlock by
//     defer, or in a Cleanup that is registered after New, which runs before.
//   - Clusters share nothing: tests may run in parallel.
//   - A method that waits ends after [Options].Patience and reports what it waited for.
//
// # Concurrency
//
// Everything is safe for concurrent use. Methods that wait, and calls for a node that does not
// exist, end the test as t.Fatal does, so call them on the test's own goroutine. Node may be called
// on any goroutine.
//
// # Failure
//
// If a test has already failed, held locks are not reported. The log of the nodes appears in the
// output of the test. A bug in mortise that ends a node appears in its Node.Err and in the log, not
// as a failed test.
//
// # Limits
//
// One process cannot stop a part of itself. Pause hides the clock from a node and cuts its
// connections, but the code under test runs on, and gossip on that node finds the others silent at
// once, while a stopped process would notice only later. In a cluster of one Pause stops only the
// clock. Kill loses nothing in Config.Dir that was not synced, because the files are real. The
// nodes share the wall clock of the process. The network has no latency and loses nothing except by
// a cut. Up to 256 nodes.
//
// A run in a bubble is fast, but not reproducible: the order of goroutines differs each time, so
// run a new test many times. Outside of a bubble, a machine that starves the process for more than
// about a second takes its locks away, as in production: set a longer SessionTTL in
// Options.Configure if that is common. A mortise.Node on a real socket cannot be in a bubble,
// because it would stop the time there.
//
// # Refused alternatives
//
// A fake node with scripted answers: its tests pass where the cluster behaves differently, and if
// no cluster is needed a locker.Local is less work. Child processes on real ports: they take
// seconds, differ between machines, and cannot have fake time. Faults as fields of mortise.Config:
// every user would see them, and some would use them in production. A clock and a network from the
// test: most tests do not need their own, and it is easy to get wrong.
package mortisetest
