// Package election elects one leader out of the instances of a service, and tells everybody who leads and where to reach him:
//
//	e := election.New(node, "billing", election.Options{})
//	err := e.Run(ctx, "10.0.0.7:8080", func(ctx context.Context, l *election.Leadership) error {
//		return bill(ctx, l.Token()) // until ctx ends
//	})
//	...
//	leader, err := e.Leader(ctx) // on any instance: who leads, its value and its token
//
// An election is a lock: whoever holds the lock of its name leads. The value travels in the same request, so it is there from the moment of the
// grant to its end, and no instance can be the leader with the value of another.
//
// [Election.Run] is what most want. [Election.Campaign] is for those who keep the [Leadership] themselves, [Election.Leader] and
// [Election.Observe] for those who only want to know.
//
// # Guarantees
//
//   - At most one leadership of a name is not over, as seen by [Leadership.Err]: the old leader can know that it is over before the next one begins.
//   - [Leadership.Token] rises with every leader, whatever fails in between. A resource that refuses lower tokens than it has seen is safe even against a
//     leader that was stopped in the middle of its work and does not know that another leads.
//   - Leaders follow each other in the order in which they began to campaign.
//   - A leader that resigns, or whose Run ends, is followed at once: the next one is told, it does not ask. After a crash the next one leads within
//     SessionTTL and one failover.
//   - Run never runs two functions at a time. It resigns only when the function has returned, and campaigns again only then.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Run, its function and [Options.Report] work in the goroutine that calls Run, and Observe in the one that ranges
// over it; nothing here has a goroutine of its own, but for the one of each [Leadership.Context] while it has not ended. Two calls of Run are two
// candidates, also on one Election: call it once in an instance.
//
// # Cancellation
//
// When the context of Run ends, the one of its function ends; the function returns; then Run resigns, and the next leader begins. So a rolling
// deploy hands the work over in milliseconds, and never while it still runs here. The same when the node leaves: Leave waits for the
// function, for as long as its own context says.
//
// # Failure
//
// A leader that is cut off from the majority loses the leadership when its lease has run out: its context ends with [mortise.ErrLost], before
// another one can lead. Run waits for the function to return, campaigns again and leads again when its turn comes; the process has no reason
// to exit. A function that does not return although its context has ended keeps only this instance from leading. Its code may act
// while another leads: that is what the token is for.
//
// There is no callback for the end of a leadership, so none can be called without one: what must be done at the end is done by the function before it returns.
// Between a grant and the function nothing can be lost unseen: if the leadership is over by then the function is not called.
//
// A function that returns an error while it leads resigns, and so lets others lead; Run tells Options.Report and takes part again after a
// pause, which doubles with every failure in a row. A function that panics resigns, and the panic goes on through Run.
//
// A leader that has crashed is shown by Leader and Observe until its session ends, and one that has lost its leadership may be: they say what the group holds,
// not who is well. Whoever asks a leader for something gives the token along, so that a leader of the past can be refused.
//
// # Limits
//
// A name is a key of the node: 1 to 512 bytes. It stands among all other keys, so choose one that nobody locks by other means. A value has at most 1,024 bytes and stays
// the same for a leadership; to change it, resign and campaign again.
//
// Observe asks at an interval, since the group pushes to waiters only: each observer costs one question to the leader of the group per question's pause, which is half of [Options.Interval]
// to the whole, 1 s by default. A leadership that comes and goes between two questions is not seen. Run one observer in an instance, not one for
// each of its users.
//
// # Refused alternatives
//
// Callbacks for start and stop: the stop is called for one who never led, or runs beside the work that it was to end, and whoever forgets to exit leads on. A function
// with a context has one end, and it is the function's. A value written after the lock was granted: there is a
// moment when the leader is new and the value is the old one's, and a writer that was stopped can overwrite its successor's. A queue entry that
// outlives a lost session and is taken up again: two can then believe in it. Here what was lost is lost for ever, and the next attempt has
// a new token.
package election
