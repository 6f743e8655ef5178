// Package election elects one leader among the instances of a service. Every instance can find out
// which instance leads and at which address:
//
//	e := election.New(node, "billing", election.Options{})
//	err := e.Run(ctx, "10.0.0.7:8080", func(ctx context.Context, l *election.Leadership) error {
//		return bill(ctx, l.Token()) // until ctx ends
//	})
//	...
//	leader, err := e.Leader(ctx) // on any instance: the leader, its value and its token
//
// An election is a lock whose key is the name of the election. The holder of the lock is the
// leader. The value is part of the request, so no instance ever sees a leader with another leader's
// value.
//
// [Election.Run] suits most services. [Election.Campaign] returns the [Leadership] to the caller.
// [Election.Leader] and [Election.Observe] serve instances that only need to know the leader.
//
// # Guarantees
//
//   - At most one leadership of a name is valid at a time: [Leadership.Err] reports its end before
//     the next one begins, under the conditions of package mortise (clocks that run at most 1%
//     off).
//   - [Leadership.Token] is higher for every later leader, whatever fails between them. A resource
//     that refuses tokens lower than the highest one it has seen is safe even against a former
//     leader that does not know that it has been replaced.
//   - Candidates lead in the order in which the group received their campaigns.
//   - When a leader resigns, or its Run ends, the next candidate is notified immediately. After a
//     crash of the leader, the next candidate leads within SessionTTL and one failover.
//   - One Run never runs two functions at a time, because it resigns only after the function has
//     returned.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Run, its function and [Options.Report] run on the
// goroutine that calls Run, and Observe on the one that ranges over it. Only [Leadership.Context]
// starts a goroutine, which ends with that context. Every call of Run is a candidate: call it once
// per instance.
//
// # Cancellation
//
// When the context of Run ends, the context of its function ends. After the function has returned,
// Run resigns and the next candidate leads. So a rolling deployment hands the work over in
// milliseconds. The same happens when the node leaves: Leave waits for the function, as for any
// holder of a lock, until the context of Leave ends or, if that has no deadline, for 10 s.
//
// # Failure
//
// A leader that is cut off from the majority loses the leadership when its lease expires. The
// context of its function ends, with [mortise.ErrLost] as the cause, before another instance can
// lead. Run waits for the function to return, and campaigns again. A function that ignores the end
// of its context may act while another instance leads; the token protects against that.
//
// There is no callback for the end of a leadership. If a leadership ends before the function is
// called, the function is not called.
//
// If the function returns an error while it leads, Run resigns, calls Options.Report and campaigns
// again after a pause, which doubles with every failure in a row. If it panics, Run resigns, and
// the panic continues through Run.
//
// Leader and Observe report a leader that has crashed, or was cut off, until its session ends. A
// request to a leader should carry the token, so that a former leader can refuse it.
//
// # Limits
//
// A name is a key of the node, 1 to 512 bytes: choose one that no other code locks. A value has at
// most 1,024 bytes and cannot change during a leadership. If it has at most 700 bytes, the lock
// also has the label mortise.purpose. Then the console, mortise doctor and the alerts do not warn
// about a long hold.
//
// Observe uses mortise.Node.Watch. The leader of the group serves at most 1,024 watches, so run one
// observer per instance. Observe first reads all keys of the group, and it also receives events of
// keys that begin with the name of the election.
//
// # Refused alternatives
//
// Callbacks for start and stop: the stop callback may be called without a leadership, or while the
// work that it should end still runs, and then only exiting the process is safe.
package election
