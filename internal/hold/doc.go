// Package hold runs a function while a lock is held, and acquires the lock again after a loss. It
// is the loop of packages election and keep, whose comments describe it. Watch notices a function
// that hangs, for packages tick and shard.
//
// Guarantees: one Run never runs two functions at a time, and releases a hold only after its
// function has returned. Concurrency: Run starts no goroutine; only the context of a hold may.
// Watch starts one that ends with it.
// Failure: a panic of the function releases the hold and reaches the caller. Limits: none of its
// own. Refused alternative: two functions, for the begin and the end of a hold; see package
// election.
package hold
