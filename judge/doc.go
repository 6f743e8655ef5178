// Package judge checks histories of lock operations with two independent judges. It is a separate
// module, so that users of mortise do not depend on porcupine.
//
// Every instance with Config.History writes a history. Package internal/history documents the
// format. This command judges files:
//
//	go run github.com/mortise-lock/mortise/judge/cmd/mortise-judge FILE...
//
// The first judge is the witness check of internal/history. It takes the order of all operations
// from the logs that the voters recorded, and verifies that this order explains the results of all
// calls. It checks all rules, but it trusts the recorded order.
//
// The second judge is porcupine, with a model of a fenced lock. The state of a key consists of its
// owners and the highest token so far. Each owner takes some permits and names a total of permits.
// The model has three operations:
//
//	grant T   T is higher than every token before, and T's permits with those of all owners are at
//	          most the lowest total that any of them names: T becomes an owner
//	end T     T is an owner, and no longer is
//	seen T    T is an owner: nothing changes
//
// A mutex takes one permit of a total of one, so it has at most one owner. A reader takes one
// permit of an unlimited total. A request for a semaphore takes some permits of a total. Porcupine
// searches for an order of the operations that does not contradict their times. From the recorded
// logs of the voters, it uses only the fact that a lock was granted or ended, the latest possible
// time of the grant or the end, and the tokens that a stay has reserved.
//
// A stay is an owner of its key without a caller. Its passes are operations too, and Porcupine
// searches for their order separately. The stay is granted before any of its passes is returned,
// and ends when no caller believes any more that it holds a pass.
//
// # Guarantees
//
// A nil error means that both judges found no violation. A search that takes too long fails with
// ErrUnknown.
//
// # Concurrency
//
// Judge does not change its events and is safe for concurrent use. Porcupine searches the keys on
// several goroutines, which have ended when Judge returns.
//
// # Failure
//
// The error of a violation describes the violation and names the judge that found it. errors.As
// finds the [history.Violation] of the first judge.
//
// # Limits
//
// If many calls for one key were canceled at the same time, the search takes long, because each of
// them could have held the lock. Porcupine searches each key separately. So only the first judge
// checks that all keys of one grant are granted at the same moment.
//
// # Refused alternative
//
// One judge alone is not enough. The first judge trusts the order of the log, which comes from
// the code under test. The second judge cannot check the order of the requests, or that a pass is
// of the same instance as its stay. It also does not notice if the state of the group keeps a lock
// forever.
package judge
