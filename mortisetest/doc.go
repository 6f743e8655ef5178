// Package mortisetest gives tests a real cluster: complete nodes of package mortise in one process,
// on a network in memory. Each event, such as a crash or a cut of the network, is one method call.
//
//	func TestMyWorkerStops(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			cluster := mortisetest.New(t, 3)
//			go work(cluster.Node(0)) // the code under test
//			cluster.AwaitHolder("orders/42", 0)
//			cluster.Lose(0) // the node loses its locks: does work stop?
//
// # What to use
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
// The file scenario_test.go shows tests of a service in fake time. The examples take real time.
//
// # Inside and outside of a bubble
//
// Everything works inside and outside of a bubble without a setting. Inside of a bubble, time is
// fake: three nodes start and close in about 30 ms of real time, and an hour of fake time takes
// about three seconds; with the race detector both take much longer. Outside of a bubble, three
// nodes are ready in about a second. After Kill, Pause and Isolate, a lock is granted to the next
// waiter when the SessionTTL of the holder, 2 s, has passed. After Lose it is granted immediately.
//
// Go's race detector (1.26, golang.org/issue/78156) can crash in a bubble when goroutines fire
// timers on several processors at the same time: the process ends with SIGSEGV, or with
// "ThreadSanitizer: CHECK failed", and no race is reported. Such crashes are rare, and do not occur
// with go test -race -cpu=1.
//
// # Guarantees
//
//   - The nodes run the code of package mortise, with its gossip, its Raft and its gRPC. Only the
//     network, the boot-time clock and the name lookup are replaced.
//   - The test fails at its end if a running node holds a lock or a call waits for one (unless
//     [Options].MayHold is set), if a node does not close, or if a goroutine of a node remains.
//     Unlock with defer, or in a Cleanup that is registered after New.
//   - Clusters share nothing: tests may run in parallel.
//   - A method that waits fails the test after [Options].Patience at the latest, and reports what
//     it waited for.
//
// # Concurrency
//
// Everything is safe for concurrent use. Methods that wait, and calls for a node that does not
// exist, may end the test as t.Fatal does, so call them only on the test's own goroutine. Node may
// be called on any goroutine if the node exists.
//
// # Failure
//
// If a test has already failed, held locks are not reported. The nodes log to the output of the
// test. A bug in mortise that ends a node is visible in Node.Err and in the log, but does not fail
// the test.
//
// # Limits
//
// Pause freezes the clock that a node reads and cuts its connections, but the code under test
// continues to run. The gossip on the paused node notices immediately that the other nodes do not
// answer; a stopped process notices that only when it continues. In a cluster of one, Pause stops
// only the clock. After Kill, files in Config.Dir contain even data that was not synced, unlike
// after a crash of a machine. All nodes use the wall clock of the process. The network has no
// latency and loses nothing unless it is cut.
//
// A run in a bubble is not reproducible: the order of goroutines differs each time, so run a new
// test many times. Outside of a bubble, nodes lose their locks if the machine gives the process no
// CPU time for more than about a second. If this happens often, set a longer SessionTTL in
// Options.Configure. A mortise.Node on a real socket cannot run in a bubble, because goroutines
// that block on a socket stop the time of the bubble.
//
// # Refused alternatives
//
// A fake node with scripted answers: tests would pass in cases where a real cluster behaves
// differently. Faults as fields of mortise.Config: some users would set them in production.
package mortisetest
