// Package stay decides about stays and passes.
//
// A stay is a lock that a session keeps after its caller has unlocked. The session then grants the
// lock to its next callers itself, without a message. Such a grant is a pass. The group regards a
// stay as an ordinary granted request. The session gives a stay back when another request waits for
// the lock, or when no caller has used the stay for a time. A stay that no caller is inside of and
// no caller waits for is free.
//
// [Set] contains the stays of one session, or of a part of its keys. Package client carries out its
// commands and news.
//
// # Guarantees
//
//   - At most one caller of a stay holds the lock, unless the stay is shared. Callers are served in
//     the order of their calls.
//   - The grant of a stay reserves tokens. Each pass takes the next one, at most one TTL after the
//     grant, so the tokens of a key rise. No caller gets the token of the stay itself.
//   - A pass is granted only while the lease is neither lost nor in jeopardy.
//   - After a recall, which is the notice that another request waits, at most 16 callers that
//     waited before the recall are granted the lock, for at most 10 ms. The stay ends when all its
//     callers have unlocked.
//   - A free stay is given back as soon as another request is about to wait for it.
//   - If a request with Try fails because a caller of the stay holds the lock, the caller held it
//     during the call.
//
// All callers of a key have one request in the group's queue. If each caller that is left after a
// recall had its own request, another request would always wait behind each of them. Then every
// stay would be recalled at once, and the session would never keep the lock again.
//
// # Concurrency
//
// A Set has no goroutine and no clock, and is not safe for concurrent use.
//
// # Limits
//
// At most 65,536 callers with at most 8 MiB of keys wait for the stays of a Set. It remembers at
// most 10,000 keys whose stays were of little use.
package stay
