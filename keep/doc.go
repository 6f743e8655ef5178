// Package keep holds any request for as long as the program runs: it acquires the lock again when
// it is lost, as package election does for a leadership.
//
//	request := mortise.Request{Key: "partners/acme", Mode: mortise.Permits(1, 3)}
//	work := func(ctx context.Context, l *mortise.Lock) error {
//		return poll(ctx) // until ctx ends; at most three instances at a time
//	}
//	err := keep.Run(ctx, node, request, keep.Options{}, work)
//
// The request may be exclusive or shared, for permits of a semaphore, or for several keys. For one
// leader that others can find, use package election.
//
// # Guarantees
//
//   - The function runs only after the lock was granted, with a context that ends when the lock is
//     lost.
//   - One Run never runs two functions at a time, and unlocks only after the function has returned.
//   - For exclusive requests, the token increases with every grant. Tokens do not fence shared
//     requests and permits; see [mortise.Request].
//
// # Concurrency
//
// Run may be called concurrently. The function and [Options].Report run on the goroutine that calls
// Run. The context of the function uses one goroutine, which ends with the hold.
//
// # Cancellation
//
// When the context of Run ends, the context of the function ends. After the function has returned,
// Run unlocks. The same happens when the node leaves: Leave waits for the function as for any
// holder.
//
// # Failure
//
// If the lock is lost, the context of the function ends, with [mortise.ErrLost] as its cause. Run
// waits for the function to return, and acquires the lock again, at the end of the queue. A
// function that ignores the end of its context may act without the lock. If the lock is lost before
// the function could be called, the function is not called. If the function panics, Run unlocks,
// and the panic reaches the caller of Run.
//
// # Limits
//
// Those of the request. The lock has the label mortise.purpose, so a long hold causes no warning,
// unless the request has labels of its own, or has a value of more than 700 bytes.
//
// # Refused alternatives
//
// Run could return a lock that is renewed behind the caller's back. But then the work that a loss
// must end could continue under the next grant.
package keep
