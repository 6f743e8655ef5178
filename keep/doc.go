// Package keep holds a lock as long as a function works, and acquires it again when it was lost:
//
//	request := mortise.Request{Key: "importers", Permits: 1, Of: 3}
//	work := func(ctx context.Context, lock *mortise.Lock) error {
//		return importFiles(ctx) // until ctx ends; on three instances at a time
//	}
//	err := keep.Run(ctx, node, request, keep.Options{}, work)
//
// Package election does this for one exclusive lock whose holder all instances can find. Package
// keep does it for any request: shared, permits of a semaphore, several keys, with a value or
// labels.
//
// # Guarantees
//
//   - The function runs only while the lock is held: its context ends with the lock, and the lock
//     is released only after the function has returned.
//   - One Run never runs two functions at a time.
//   - The token rises with every hold.
//
// # Concurrency
//
// Run, its function and [Options].Report run on the goroutine that calls Run. Only mortise.Lock's
// Context starts a goroutine, which ends with that context.
//
// # Failure
//
// If the lock is lost, the context of the function ends, with [mortise.ErrLost] as the cause. Run
// waits for the function to return, and acquires the lock again. A function that ignores the end of
// its context may act beside the next holder; the token protects against that, except for permits.
// If the function panics, Run releases the lock, and the panic reaches the caller of Run.
//
// # Limits
//
// Run makes one request at a time, with the same terms each time. A request with Try or Resume is
// refused, because a repetition would have another meaning.
package keep
