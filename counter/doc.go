// Package counter counts in the data of a key, such that each addition takes effect exactly once,
// also if its answer was lost:
//
//	invoices := counter.New(node, "invoices/2026")
//	number, err := invoices.Add(ctx, 1)
//
// An error of Add leaves open whether the addition took effect. To find out, use an [Addition] and
// repeat it:
//
//	one := invoices.Addition(1)
//	number, err := one.Do(ctx)
//	...
//	number, err = one.Do(later) // adds nothing if the first call did
//
// # Guarantees
//
//   - Additions take effect one after the other. Each result is the value directly after one.
//   - An Addition takes effect at most once in a counter, however often Do is called. If Do returns
//     no error, it took effect exactly once.
//   - Value is linearizable: it contains every addition whose Do or Add had returned before.
//
// # Concurrency
//
// Any number of instances and goroutines may use the counters of one key. An Addition belongs to
// one goroutine at a time. The package starts no goroutine.
//
// # Failure
//
// The data has the results of the last 64 additions. If an attempt failed, and more than 64 others
// were made before the next one, Do returns [ErrUnknown] and adds nothing. The counter ends with
// its group, as all data does: if all instances lose their logs, it begins again at zero. Numbers
// that must never repeat are what mortise.Node.IDs gives.
//
// # Limits
//
// An addition is two messages to the leader and one entry of the log. Additions that are made at
// the same time wait for each other, because one of them succeeds at each revision of the data. A
// counter is for hundreds of additions in a second. It uses one of the 16,384 keys that can have
// data. To remove it, call mortise.Node.Put with empty data. An addition that is repeated after
// that can count once more, in the next counter of the key.
package counter
