// Package fence protects resources against holders that have lost their lock and have not noticed
// yet. A resource remembers the highest fencing token that it has seen and refuses lower ones.
//
//	err := node.Do(ctx, "orders/42", func(ctx context.Context, token mortise.Token) error {
//		return marks.InTx(ctx, "orders/42", token, func(tx *sql.Tx) error { … })
//	})
//
// InTx rolls back if a later holder has already written.
//
// # Which one
//
//	rows of a database            [Table], [Tx]: a table of marks, moved inside your own transaction
//	one row                       [Row]: a column of its own, no extra round trip
//	memory of one process         [Mark]
//	a file                        [WriteFile]; [Files] for the marks alone
//	an object in a bucket         [Put]: a conditional write, the token in the metadata
//	a service behind HTTP, gRPC   [Transport] and [Guard]; package fence/grpcfence
//	anything else                 a [Store] and [Run]
//	work that is done once        [Ledger] in a database, [Memo] in memory
//
// Use one lock, with one key, for one resource. Comparing tokens of different keys means nothing.
//
// # Guarantees
//
//   - Each store here refuses a lower token of a resource after a higher one, under any
//     concurrency, as long as the marks exist: those of a Mark in its process, of Files and
//     WriteFile in their files, of a Table in its rows.
//   - The same token is admitted any number of times.
//   - Tables, rows, files and objects are compared and written in one step. A Mark keeps writers
//     apart with Do. After Advance, which only compares, another writer can overtake.
//   - A refusal is a [*StaleError], and nothing has been written. After any other error a retry is
//     safe; see the function.
//
// Package mortise guarantees that a later holder has a higher token, under its conditions on wall
// clocks.
//
// # Concurrency
//
// Everything is safe for concurrent use. [Mark.Do] moves the mark before it waits for older
// holders, so nothing else of an older holder is admitted meanwhile.
//
// # Failure
//
// Nothing runs in the background. A wait ends with its context, and the error names what it waited
// for. A mark that cannot be read is an error, never zero: a store that is down refuses every
// token. If a mark is lost (a row deleted, a directory restored from a backup), an old holder is
// admitted once more.
//
// # Limits
//
// Tokens are 1 to 2^63-1; no group grants higher ones before 2109. Names of resources are 1 to 512
// bytes of UTF-8 without control characters, like keys. A Mark remembers 65,536 resources by
// default, and refuses tokens that are older than what it has forgotten. Fencing protects from late
// writers, not from hostile ones: a client that may write can send the highest token and so lock
// all others out.
//
// # Refused alternatives
//
// Asking the lock service whether a token is still valid: the answer is stale when the write
// happens, and the resource depends on one more service. Comparing for "not equal to the last"
// instead of "lower than the highest": it refuses a holder that comes second without having lost
// its lock. Forgetting the least recently used mark without a floor: it admits exactly the writer
// that was stopped the longest. Drivers and SDKs: database/sql and two small interfaces are enough.
package fence
