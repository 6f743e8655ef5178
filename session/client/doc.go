// Package client is an instance's side of a session. It finds the leader, renews one lease, and
// acquires locks under that lease.
//
// [Core] makes all decisions. [Client] is the shell around the Core, and [Hold] is one granted
// lock. Package session explains the trust window of the lease.
//
// # The phases
//
//	         no target to ask, or told to wait
//	     +----------------------------------------+
//	     |            (50 ms, growing to 200 ms)  |
//	     v                                        |
//	+---------+   ask: no session   +---------+   |
//	| seeking | ------------------> | opening | --+--> next target: silent for min(500 ms, TTL/6),
//	+---------+                     +---------+   |    its stream ended, or redirected
//	  |     ^                            |        |
//	  |     |                            | Opened |
//	  |     | stream ended, silent       v        |
//	  |     | leader, redirect      +-----------+ |
//	  +-----|---------------------> | attaching | +
//	   ask: |   a session           +-----------+
//	        |                            | Attached: what was named and is
//	        |                            v not reported is finished
//	        |                       +----------+
//	        +---------------------- | attached | -- renew every TTL/3,
//	                                +----------+    at least every 3 s
//
// A client finds the leader by sending Open or Attach to a voter. A follower answers with a
// redirect to the leader. If it knows no leader, it sends another redirect when a leader is
// elected, and the voter in the client's own process does so unasked. If the stream to a leader
// ends twice in a term, the client does not follow voters to it again: it waits for such a
// redirect, and for 50 to 200 ms at most. Each attachment has its own epoch, and the client ignores
// replies with another epoch. After a reply "no session", the client opens a new session with a new
// nonce.
//
// A target has more time to answer if the last answers were slow, or if the client itself is late.
// Otherwise many clients would leave a leader that is only busy, and keep it busy by attaching
// again. While a lease runs, that is at most half of its rest, or TTL/6 or 500 ms if that is more,
// and a late client allows no more once two thirds of the TTL have passed. So a client asks other
// targets before its locks are lost.
//
// A request gets its number when it is sent. Every later Attach names that number as long as the
// caller wants the request. The group ends every request that an Attach does not name. If an Attach
// names a waiting request and no reply reports its state, the client sends the request again under
// a new number, at its old place. These rules also cover cancels, releases, duplicates and lost
// frames.
//
// # Guarantees
//
//   - A call that returns an error holds nothing, now or later. A grant that arrives after the end
//     of the call's context is released. A grant that arrives when less than TTL/10 of the lease
//     is left is also released, and its request is sent again.
//   - [Hold.Err] reads the clock, so it reports a loss even before a timer has fired.
//   - A hold that was reported lost is never reported held again. Only a hold in doubt can be.
//   - Requests of one client are sent, and sent again, in the order of the calls.
//   - A client attaches only to a voter in its list, or to the leader that such a voter has named.
//     It accepts an answer to Open only from an instance to which it has sent the nonce. So
//     another instance cannot pose as the leader and acknowledge leases.
//
// # Doubts
//
// A hold whose request has a Grace is not lost at the deadline of the lease, but in doubt: the core
// sends no Release, and the next Attach names its entry. The hold is good again if two things are
// known. The group has stated, on the present attachment, that the entry is granted with the same
// token. And a renewal was acknowledged whose own deadline has not passed. One of them is not
// enough: the session may have lost the entry, and an older acknowledgement proves only the past.
//
// No command grants a finished number again. So the statement proves that the hold was at the head
// of its queues until then, and that no conflicting request was granted. The hold is lost when its
// grace is over, or when the group states anything else. It was then lost since its doubt began.
//
// # Stays
//
// Package stay decides about stays, which are locks that the client keeps after its caller has
// unlocked, and about passes, which are the grants out of stays. kept.go is the shell around its
// Set. A request of the Set is a request of the Core with the field Sticky.
//
//   - At the deadline, the client marks every pass as lost before it publishes a later deadline. An
//     Unlock of a pass is confirmed by the lease, and not by the group.
//   - A request with Try at another client waits for the answer of the stay's client, if only such
//     requests wait. So ErrHeld means that a caller held the lock during the call, or that another
//     request already waited for the lock. Without an answer, the call fails with ErrKept after two
//     seconds.
//   - A crash leaves the free stays taken until the session expires. Close releases them.
//
// # Concurrency
//
// Client and Hold are safe for concurrent use; Core is not. One goroutine owns the core. Other
// goroutines append to an inbox and wake the goroutine of the core. A turn processes the whole
// inbox and sends one frame. Callers and the goroutine use the stays under mutexes, one for each
// part of the keys, and never lock two of these at once. They may lock the mutex of a Hold or of
// the inbox while they hold one, and that of the inbox while they hold that of a Hold. No mutex is
// held while waiting.
//
// # Failure
//
// A deposed leader may report a newer session as missing. The client ignores the report of a
// leader with an old term and asks another voter. At the deadline of the lease, the client sends
// a release for every held lock. Waiting requests continue to wait.
//
// # Limits
//
// A client has at most 65,536 pending calls and unconfirmed releases, not counting held locks, and
// at most 8 MiB of keys in waiting calls. Calls that wait for stays do not count; package stay has
// equal limits for those of one part of the keys. Further calls fail with ErrOverloaded before they
// are sent. The client sends no further requests while 1 MiB of its commands is unanswered. In one
// turn, the client reads at most 64 MiB from its leader and 1 MiB from all other instances
// together.
//
// # Refused alternative
//
// Requests could get their number when they are made. This would need a rule for numbers that were
// never sent.
package client
