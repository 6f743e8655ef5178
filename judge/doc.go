// Package judge judges histories of lock operations twice. It is a separate module, so that users
// of mortise do not depend on the checker that only this package needs.
//
// Config.History writes a history, on every instance; internal/history documents its format. A
// command judges files:
//
//	go run github.com/mortise-lock/mortise/judge/cmd/mortise-judge FILE...
//
// The first judge is the witness check of internal/history: the voters' account is the order in
// which everything happened, and the judge verifies that this order explains all that callers saw.
// It checks every rule, and a million events in less than a second, but it trusts the order of the
// account.
//
// The second is porcupine, with a model of a fenced lock. A key has owners, each with its permits
// and the total that it names, and the highest token so far:
//
//	grant T   T is higher than every token before, and T's permits with those of all owners are at
//	          most the lowest total that any of them names: T becomes an owner
//	end T     T is an owner, and no longer is
//	seen T    T is an owner: nothing changes
//
// A mutex takes one of one, so it has at most one owner. A reader takes one of any number, a
// semaphore's request some of a total. Porcupine searches for any order that fits the times at
// which things can have happened, and does not use revisions, indexes or places. Of the voters'
// account it uses only that a lock was granted or ended, and by when. Ends are operations too: a
// model in which a lease may expire silently would explain any second owner by that.
//
// # Guarantees
//
// A nil error means that both have found the history right. A search that takes too long fails with
// ErrUnknown.
//
// # Concurrency
//
// Judge only reads its events and is safe for concurrent use. Porcupine searches keys on its own
// goroutines, which have ended when Judge returns.
//
// # Failure
//
// The error of a violation names the judge and its finding; errors.As finds the [history.Violation]
// of the first.
//
// # Limits
//
// A key with many calls that were given up at the same time is expensive for the search, since each
// could have held the lock. Each key is searched by itself: only the first judge checks that a
// grant of several keys has one moment.
//
// # Refused alternative
//
// Only one of the two: the first shares its view of the order with the code that it judges; the
// second cannot check the order of requests, and does not see a lock that stays in the state.
package judge
