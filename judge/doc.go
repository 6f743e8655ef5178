// Package judge judges histories of lock operations twice. It is a module of its own, so that who
// uses mortise does not depend on the checker that only this needs.
//
// A history is what Config.History has written, on all instances; its format is documented in
// internal/history. The command does it for files:
//
//	go run github.com/mortise-lock/mortise/judge/cmd/mortise-judge FILE...
//
// The first judge is the witness check of internal/history: the voters' account says in which order
// everything happened, and the judge verifies that this order explains all that callers saw. It
// sees every rule, and a million events take it less than a second; but it believes the account of
// the order.
//
// The second is porcupine, with a model of a fenced lock. A key has owners, each with permits and
// his word of how many there are, and the highest token so far:
//
//	grant T   T is above all before, and T's permits with those of all owners are no more than any of them says there are: T is an owner
//	end T     T is an owner: he is none any more
//	seen T    T is an owner: nothing changes
//
// A mutex takes one of one, so that it has one owner or none; a reader takes one of any number, a
// semaphore's request some of so many. It searches for any order that fits the times at which
// things can have happened, and knows nothing of revisions, indexes or places. From the voters it
// takes that a lock was granted or ended at all, and by when. Ends are operations of their own: a
// model in which a lease may run out silently would explain any second owner by it.
//
// # Guarantees
//
// nil means that both have found the history right. A search that takes too long is no pass: it is
// ErrUnknown.
//
// # Concurrency
//
// Judge only reads its events, and may be called at any time by anybody. Porcupine searches keys on
// goroutines of its own, and has ended them when Judge returns.
//
// # Failure
//
// A violation comes as an error that says which judge found what; errors.As finds the
// [history.Violation] of the first.
//
// # Limits
//
// A key with many calls that were given up at the same time is expensive for the search, since each
// could be who held the lock. Each key is searched by itself: that a grant of several keys is of
// one moment only the first judge sees.
//
// # Refused alternative
//
// Only one of the two: the first shares its view of the order with the code that it judges; the
// second cannot see who came first, nor a lock that stays behind.
package judge
