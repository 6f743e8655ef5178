// Package mortisetest gives tests a real cluster: whole nodes of package mortise in one process, on
// a network in memory, and what can happen to a cluster in life as one call each.
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
//	what the code does under a lock              a locker.Local where the code takes a locker.Locker: no node at all
//	a fake or an adapter of your own             package locker/lockertest says whether it does what a Locker must
//	that the code uses the node rightly          New(t, 1), ready in milliseconds; or mortise.Start with an empty Config, on a real socket
//	what happens when a lock is lost, a
//	process dies, a network is cut, a clock      New(t, 3)
//	leaps
//	the same for hours, and quickly              New(t, 3) inside a testing/synctest bubble
//	a disk, a kernel, a real network             processes of your own; not this package
//
// # What can happen
//
//	[Cluster.Lose]                        a holder loses its locks and is told
//	[Cluster.Pause], [Cluster.Resume]     a process is stopped and goes on: a holder that has lost its lock and does not know
//	[Cluster.Kill], [Cluster.Start]       a process dies without a goodbye and comes back
//	[Cluster.Isolate], [Cluster.Cut],
//	[Cluster.CutOneWay], [Cluster.Heal]   a network is cut, silently, and healed
//	[Cluster.Leap], [Cluster.Drift]       a machine sleeps; its clock is fast or slow
//	mortise.Node.Leave                    a process ends in good order; Start starts it again
//	mortise.Node.ForceUnlock              a person ends a hold
//
// [Cluster.Leader] and [Cluster.Follower] say whom it should happen to. [Cluster.Await],
// [Cluster.AwaitHolder], [Cluster.Ready] and [Cluster.Until] wait for what it leads to: no test
// needs a sleep that hopes.
//
// An Example cannot run in a bubble, so the examples here take real time. What a service would
// write is in scenario_test.go, in fake time: its TestMyWorkerStopsWhenItsLockIsLost and
// TestMyPausedWorkerIsRefused have a worker, a store that compares tokens, and a lock that is lost
// in four ways.
//
// # Inside and outside of a bubble
//
// Everything works in both; nothing has to be said. Inside, time is that of the bubble: three nodes
// are ready and closed again in about 30 ms, an hour costs about three seconds, and both are much
// longer with the race detector. Outside, three nodes are ready in about a second, and a test takes
// as long as what happens in it: after Kill, Pause and Isolate the next grant comes when the
// SessionTTL of the holder, 2 s, has passed. Lose needs no waiting.
//
// Go's race detector (1.26, golang.org/issue/78156) can crash in a bubble when goroutines fire
// timers on several processors at once: the process ends with SIGSEGV, or with "ThreadSanitizer:
// CHECK failed", and no race is reported. It is rare, and go test -race -cpu=1 is free of it.
//
// # Guarantees
//
//   - The nodes are those of package mortise and run its code, with its gossip, its Raft and its
//     gRPC. Only the network, the boot-time clock and the look-up of names are replaced, and not by
//     anything that the root exports.
//   - At its end the test fails if a node that runs holds a lock or a call waits for one
//     ([Options].MayHold), if a node does not close, or if a goroutine that it has started goes on.
//     Unlock by defer, or by a Cleanup that comes after New: then it runs before.
//   - Clusters have nothing in common: tests may run side by side.
//   - A method that waits ends after [Options].Patience and says what it waited for.
//
// # Concurrency
//
// Everything is safe for concurrent use. What waits, and what is called for a node that is not
// there, ends the test as t.Fatal does, so it belongs on the test's own goroutine; Node is safe
// anywhere.
//
// # Failure
//
// A test that has failed already is not told of locks that it holds. The log lines of the nodes
// stand in the output of the test. A bug in mortise that ends a node shows as its Node.Err and its
// log lines, not as a failed test.
//
// # Limits
//
// One process cannot stop a part of itself: Pause hides the clock from a node and lets nothing
// through to it, but the code under test runs on, as Pause says, and gossip on that node finds the
// others silent, where a stopped process would find that out only later. In a cluster of one Pause
// stops the clock alone. Kill loses nothing that was not synced to Config.Dir: files are real ones.
// Wall clocks are the process's own, and agree. The network has no latency and loses nothing but by
// a cut. Up to 256 nodes.
//
// A run in a bubble is fast, but it is not replayed: goroutines run in another order each time, so
// run a new test many times. Outside of a bubble a machine that gives the process no time for more
// than about a second takes its locks away, as it would in production: set SessionTTL in
// Options.Configure where that is usual. A mortise.Node on a real socket cannot be in a bubble,
// whose time stands still then.
//
// # Refused alternatives
//
// A fake node with scripted answers: tests of it pass where the cluster does something else. Where
// no cluster is needed a locker.Local is less work. Child processes on real ports: they take
// seconds, differ from machine to machine, and their time cannot be faked. Faults as fields of
// mortise.Config: every user would see them, and some would meet them in production. A clock and a
// network that tests hand in: that is what most want to be spared, and what they would get wrong.
package mortisetest
