// Package election elects one leader among the instances of a service, and tells every instance
// which one leads and where to reach it:
//
//	e := election.New(node, "billing", election.Options{})
//	err := e.Run(ctx, "10.0.0.7:8080", func(ctx context.Context, l *election.Leadership) error {
//		return bill(ctx, l.Token()) // until ctx ends
//	})
//	...
//	leader, err := e.Leader(ctx) // on any instance: the leader, its value and its token
//
// An election is a lock: the holder of the lock of its name leads. The value is part of the same
// request, so no instance ever sees a leader with another leader's value.
//
// [Election.Run] suits most services. [Election.Campaign] returns the [Leadership] to the caller.
// [Election.Leader] and [Election.Observe] serve instances that only need to know the leader.
//
// # Guarantees
//
//   - At most one leadership of a name is valid at a time: [Leadership.Err] reports its end before
//     the next one begins, under the conditions of package mortise (clocks that run at most 1%
//     off).
//   - [Leadership.Token] rises with every leader, whatever fails in between. A resource that
//     refuses lower tokens than it has seen is safe even against a leader that has not noticed its
//     successor.
//   - Candidates lead in the order in which the group received their campaigns.
//   - When a leader resigns, or its Run ends, its successor is notified at once. After a crash it
//     leads within SessionTTL and one failover.
//   - One Run never runs two functions at a time: it resigns only after the function has returned.
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
// When the context of Run ends, that of its function ends. After the function has returned, Run
// resigns and the next leader begins. So a rolling deployment hands the work over in milliseconds.
// The same happens when the node leaves: Leave waits for the function as for any holder of a lock,
// as long as its context allows, or 10 s.
//
// # Failure
//
// A leader that is cut off from the majority loses the leadership when its lease runs out. Its
// context ends, with [mortise.ErrLost] as the cause, before another instance can lead. Run waits
// for the function to return, and campaigns again. A function that ignores the end of its context
// keeps only this instance from leading. It may act while another instance leads; the token
// protects against that.
//
// There is no callback for the end of a leadership. If it is over before the function could be
// called, the function is not called.
//
// If the function returns an error while it leads, Run resigns, calls Options.Report and campaigns
// again after a pause, which doubles with every failure in a row. If it panics, Run resigns, and
// the panic continues through Run.
//
// Leader and Observe show a leader that has crashed or was cut off until its session ends. A
// request to a leader should carry the token, so that a former leader can refuse it.
//
// # Limits
//
// A name is a key of the node, 1 to 512 bytes: choose one that no other code locks. A value has at
// most 1,024 bytes and is fixed for a leadership. A value of up to 700 bytes leaves room for the
// label mortise.purpose. It tells the console, mortise doctor and the alerts that the lock is held
// for long by design.
//
// Observe uses mortise.Node.Watch, and the leader of the group serves at most 1,024 watches: run
// one observer per instance. It begins with a walk over all keys of the group, and also receives
// events of keys whose names begin with this one.
//
// # Refused alternatives
//
// Callbacks for start and stop: the stop callback may be called without a leadership, or run beside
// the work that it should end, and then only exiting the process is safe. Writing the value after
// the grant: for a moment the new leader has the old value, and a stopped writer can overwrite its
// successor's. A queue position that outlives a lost session: two instances can then count on it.
package election
