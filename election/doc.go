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
// leader. The value is part of the request, so a leader is never reported with another leader's
// value.
//
// [Election.Run] suits most services. [Election.Campaign] returns the [Leadership] to the caller.
// [Election.Leader] and [Election.Observe] report the leader.
//
// # Guarantees
//
//   - At most one leadership of a name is valid at a time. [Leadership.Err] reports its end before
//     the next leadership begins, if clock rates differ by at most 1%.
//   - [Leadership.Token] increases with every leadership. A resource that refuses lower tokens is
//     safe even against a leader that has not noticed that another instance leads.
//   - Candidates lead in the order in which the group received their campaigns.
//   - When a leader resigns, or its Run ends, the next candidate is notified immediately. After a
//     crash, the next candidate leads within SessionTTL and one failover.
//   - One Run never runs two functions at a time: it resigns only after the function has returned.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Run, its function and [Options.Report] run on the
// goroutine that calls Run. Observe runs on the goroutine of its loop. Only [Leadership.Context]
// starts a goroutine, which ends with that context. Every call of Run is a candidate: call it once
// per instance.
//
// # Cancellation
//
// When the context of Run ends, the context of its function ends. After the function has returned,
// Run resigns and the next leader begins. The same happens when the node leaves: Leave waits for
// the function as for any holder of a lock.
//
// # Failure
//
// A leader that is cut off from the majority loses the leadership when its lease expires. The
// context of its function ends, with [mortise.ErrLost] as the cause, before another instance can
// lead. Run waits for the function to return, and campaigns again. With [Options.JeopardyGrace] the
// leadership is first in doubt, and can survive an outage of the whole group. A function that
// ignores the end of its context may act while another instance leads; the token protects against
// that.
//
// If a leadership ends before the function could be called, the function is not called. If the
// function panics, Run resigns, and the panic reaches the caller of Run.
//
// If a leader has crashed or was cut off, Leader and Observe still report it until its session
// expires. A request to a leader should carry the token, so that a former leader can refuse it.
//
// # Limits
//
// A name is a key of the node, 1 to 512 bytes. No other code may lock this key. A value has at most
// 1,024 bytes; [Leadership.Proclaim] changes it. If the value has at most 700 bytes, the lock also
// has the label mortise.purpose. Then the console, mortise doctor and the alerts do not warn
// about a long hold.
//
// Observe uses mortise.Node.Watch. The leader of the group serves at most 4,096 watches, so run one
// observer per instance. A watch first visits all keys of the group. It also receives events of
// other keys that begin with the name of the election.
//
// # Refused alternatives
//
// The package could call one function when a leadership starts and another when it stops. But the
// second may be called without a leadership, or while the work that it should end still runs. Then
// only exiting the process is safe.
package election
