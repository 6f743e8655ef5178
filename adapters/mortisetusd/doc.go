// Package mortisetusd lets several servers of tusd share their uploads, with locks of mortise.
//
//	composer := handler.NewStoreComposer()
//	store.UseIn(composer) // a store that all instances share
//	mortisetusd.New(node, "uploads/").UseIn(composer)
//	uploads, err := handler.NewHandler(handler.Config{StoreComposer: composer, ...})
//
// tusd locks an upload during each request for it. If the connection of a client breaks, the
// server may notice that only after minutes, and the client continues at another instance. The
// lock of that request then asks the first instance, which interrupts its request and unlocks.
//
// # Guarantees
//
//   - At most one request at a time holds the lock of an upload, among all instances with the same
//     prefix. The requests wait in a queue.
//   - When another request waits, the holder's requestUnlock is called, on whatever instance it
//     is, without polling. It is also called when the lock is lost, and when the node begins to
//     leave: the request then ends, and its client continues elsewhere.
//   - Lock returns handler.ErrLockTimeout if the lock is not granted in time, which is
//     Config.AcquireLockTimeout of the handler, 20 s by default.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. A held lock uses two goroutines, which end when
// it is unlocked or lost, or when its node is closed.
//
// # Failure
//
// If an instance is killed, its locks stay taken until its session expires
// (mortise.Config.SessionTTL, 10 s by default), and then the first request in the queue is
// served. Config.AcquireLockTimeout must be longer. While the group has no majority, requests end
// with ErrLockTimeout.
//
// # Limits
//
// The stores of tusd compare no tokens. A process that is stopped, loses its locks and continues
// may still write the chunk that it has received, until the interruption has effect. Tools that
// change uploads without the Locker are not kept out.
//
// A key has at most 512 bytes of UTF-8 without control characters. For an ID with which it would
// not, such as a very long one, the key has the SHA-256 of the ID.
//
// # Refused alternative
//
// The lockers of tusd are for one process (memorylocker) and for the processes that share a file
// system on one machine (filelocker, which compares PIDs and polls).
package mortisetusd
