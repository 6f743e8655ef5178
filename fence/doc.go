// Package fence protects resources against holders that have lost their lock without noticing it. A
// resource remembers the highest fencing token and refuses lower tokens. This highest token is the
// resource's mark.
//
//	err := node.Do(ctx, "orders/42", func(ctx context.Context, token mortise.Token) error {
//		return marks.InTx(ctx, "orders/42", token, func(tx *sql.Tx) error { … })
//	})
//
// InTx rolls back if a holder with a higher token has already written.
//
// # Choosing a function or type
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
// Use one lock, with one key, for one resource. Tokens of different keys cannot be compared.
//
// # Guarantees
//
//   - Each store of this package refuses a token after it has seen a higher one for the same
//     resource, under any concurrency, as long as the marks exist. A Mark loses its marks when its
//     process ends.
//   - The same token is admitted any number of times.
//   - For tables, rows, files and objects, comparing and writing are one atomic step. With a Mark,
//     use [Mark.Do] to keep writers apart. After [Mark.Advance], another writer can write before
//     you do.
//   - A refusal is a [*StaleError], and nothing has been written. After any other error the call
//     can safely be repeated; the documentation of each function says how.
//
// Package mortise guarantees that a later holder has a higher token. Its documentation states the
// conditions on wall clocks.
//
// # Concurrency
//
// Everything is safe for concurrent use.
//
// # Failure
//
// Nothing runs in the background. A wait ends with its context. If a mark cannot be read, the call
// fails. So a store that is down admits no token. If a mark is lost (a row is deleted, a directory
// is restored from a backup), an old holder can be admitted again.
//
// # Limits
//
// Tokens are 1 to 2^63-1; no group grants higher ones before 2109. Names of resources are 1 to 512
// bytes of UTF-8 without control characters, like keys. A Mark remembers 65,536 resources by
// default. For a resource that it has forgotten, it refuses tokens below a floor. Fencing does not
// protect from hostile writers: a client that may write can send the highest token and so lock out
// all other clients.
//
// # Refused alternatives
//
// Asking the lock service whether a token is still valid was rejected, because the answer may be
// stale when the write happens. Refusing every token that differs from the last one would refuse a
// later holder.
package fence
