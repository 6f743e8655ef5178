// Package fence makes resources safe against holders of a lock that have lost it and do not know
// yet. A resource remembers the highest fencing token that it has seen and refuses lower ones: then
// it does not matter that a process can be stopped between a check and a write.
//
//	err := node.Do(ctx, "orders/42", func(ctx context.Context, token mortise.Token) error {
//		return marks.InTx(ctx, "orders/42", token, func(tx *sql.Tx) error { … }) // rolled back if a later holder was here
//	})
//
// # Which one
//
//	rows of a database            [Table], [Tx]: a table of marks, moved inside your own transaction
//	one row                       [Row]: a column of its own, no round trip more
//	memory of one process         [Mark]
//	a file                        [WriteFile]; [Files] for the marks alone
//	an object in a bucket         [Put]: a conditional write, the token in the metadata
//	a service behind HTTP, gRPC   [Transport] and [Guard]; package fence/grpcfence
//	anything else                 a [Store] and [Run]
//	work that is done once        [Ledger] in a database, [Memo] in memory
//
// Use one key, one lock, for one resource: tokens of different keys may be compared, but say
// nothing about each other's holders.
//
// # Guarantees
//
//   - Of one resource, no lower token is admitted after a higher one, by any store here, under any
//     concurrency, and as long as its marks live: those of a Mark as long as the process, of Files
//     and WriteFile as long as the files, of a Table as long as the rows.
//   - The same token is admitted any number of times: a holder writes as often as it likes.
//   - Tables, rows, files and objects are compared and written in one step. A Mark keeps writers
//     apart with Do. Advance alone only compares: whoever writes after it can be overtaken in
//     between.
//   - A refusal is a [*StaleError], and nothing has been written. Any other error means what is
//     written beside it, and asking again is safe.
//
// That the later holder has the higher token is the promise of package mortise, and its conditions
// on wall clocks hold here.
//
// # Concurrency
//
// Everything is safe for concurrent use. Where [Mark.Do] keeps a new holder waiting for an old one
// the mark has moved already, so that nothing else of the old one is admitted meanwhile.
//
// # Failure
//
// Nothing runs in the background. What waits ends with its context, and says what for. A mark that
// cannot be read is an error and never zero: a store that is down refuses everybody. A mark that
// was lost (a row deleted, a directory restored from a backup) admits an old holder once more.
//
// # Limits
//
// Tokens are 1 to 2^63-1, which no group leaves before 2109. Resources are named by 1 to 512 bytes
// of UTF-8 without control characters, as locks are. A Mark remembers 65,536 resources unless told
// otherwise, and refuses what is older than what it has forgotten. A token is a number and no
// secret: who may write at all can send the highest one and shut out everybody else. Fencing
// protects from the late, not from the hostile.
//
// # Refused alternatives
//
// Asking the lock service whether a token is still valid: the answer is old when the write happens,
// and the resource depends on one service more. Comparing for "not equal to the last" instead of
// "lower than the highest": it refuses a holder that comes second without having lost. Forgetting
// the longest unused mark without a floor: it admits the very writer that was stopped the longest.
// Drivers and SDKs: database/sql and two small interfaces are enough, so that nobody inherits a
// dependency that he does not use.
package fence
