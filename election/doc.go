// Package election elects one leader out of the instances of a service, and tells everybody who
// leads and where to reach it:
//
//	e := election.New(node, "billing", election.Options{})
//	err := e.Run(ctx, "10.0.0.7:8080", func(ctx context.Context, l *election.Leadership) error {
//		return bill(ctx, l.Token()) // until ctx ends
//	})
//	...
//	leader, err := e.Leader(ctx) // on any instance: who leads, its value and its token
//
// An election is a lock: whoever holds the lock of its name leads. The value travels in the same
// request, so it is there from the moment of the grant to its end, and nobody ever sees a leader
// with the value of another.
//
// [Election.Run] is what most want. [Election.Campaign] is for those who keep the [Leadership]
// themselves; [Election.Leader] and [Election.Observe] are for those who only want to know.
//
// # Guarantees
//
//   - At most one leadership of a name is not over by its own [Leadership.Err]: that one turns
//     before the next leadership begins, on the terms of package mortise (a clock that runs at most
//     1% off).
//   - [Leadership.Token] rises with every leader, whatever fails in between. A resource that
//     refuses lower tokens than it has seen is safe even against a leader that was stopped in the
//     middle of its work and does not know that another leads.
//   - Candidates lead in the order in which the group has received their campaigns.
//   - A leader that resigns, or whose Run ends, is followed at once: the next one is told, it does
//     not ask. After a crash the next one leads within SessionTTL and one failover.
//   - One Run never runs two functions at a time. It resigns only when the function has returned,
//     and campaigns again only then.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Run, its function and [Options.Report] work in
// the goroutine that calls Run, and Observe in the one that ranges over it. Nothing here starts a
// goroutine but [Leadership.Context], whose one ends with the context. Two calls of Run are two
// candidates, also on one Election: call it once in an instance.
//
// # Cancellation
//
// When the context of Run ends, the one of its function ends; the function returns; then Run
// resigns, and the next leader begins. So a rolling deploy hands the work over in milliseconds, and
// never while it still runs here. It is the same when the node leaves, and Leave waits for the
// function as it does for any holder of a lock: as long as its context says, or 10 s.
//
// # Failure
//
// A leader that is cut off from the majority loses the leadership when its lease has run out: its
// context ends, with [mortise.ErrLost] as the cause, before another one can lead. Run waits for the
// function to return, campaigns, and leads again when its turn comes; the process has no reason to
// exit. A function that does not return although its context has ended keeps only this instance
// from leading. Its code may act while another one leads: that is what the token is for.
//
// There is no callback for the end of a leadership, so none can be called without a leadership:
// what must be done at its end the function does before it returns. If a leadership is over before
// the function could be called, it is not called.
//
// A function that returns an error while it leads resigns, and so lets others lead; Run tells
// Options.Report and takes part again after a pause, which doubles with every failure in a row. If
// the function panics, Run resigns, and the panic goes on through Run.
//
// Leader and Observe say what the group holds, not who is well: a leader that has crashed or was
// cut off is shown until its session ends. Whoever asks a leader for something gives the token
// along, so that a leader of the past can refuse to answer.
//
// # Limits
//
// A name is a key of the node, 1 to 512 bytes, and stands among all other keys: choose one that
// nobody locks by other means. A value has at most 1,024 bytes and stays the same for a leadership;
// to change it, resign and campaign again. Up to 700 bytes of it leave room for the label
// mortise.purpose, by which the page, mortise doctor and the alerts know that this lock is held for
// long by design.
//
// Observe stands on mortise.Node.Watch, of which the leader of the group keeps 1,024 at a time: run
// one observer in an instance, not one for each of its users. It begins with a walk over all keys
// of the group, and hears of those too whose names begin with this one.
//
// # Refused alternatives
//
// Callbacks for start and stop: the stop is called for one who never led, or runs beside the work
// that it should end, and then only the end of the process is safe. A function with a context has
// one end, and it is the function's own. A value that is written after the lock was granted: for a
// moment the new leader has the old one's value, and a writer that was stopped can overwrite its
// successor's. A place in the queue that outlives a lost session and is taken up again: two can
// then believe in it. What was lost here stays lost, and the next attempt has a new token.
package election
