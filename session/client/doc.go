// Package client is the instance's side of a session. It finds the leader, keeps one lease alive,
// and acquires locks under that lease.
//
// [Core] makes all decisions and is a plain value in memory. [Client] is the shell around the core:
// only its files, client.go, inbox.go, hold.go and waiter.go, use the clock, the goroutine and the
// channels of callers. [Hold] is one granted lock. The comment of package session explains the
// trust window, which is the promise of the lease.
//
// A request asks for a mutex unless it has [Terms], the other fields of an Acquire in
// lockfsm.Command. The client interprets only two of them: it translates Under into the number of
// the other request, and it measures Longest.
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
// Open and Attach are themselves the question "do you lead?". A voter that does not lead answers
// with a redirect, which names the leader if the voter knows one. It sends another redirect as soon
// as it knows a leader. Each attachment has an epoch of its own. The client ignores a reply about
// another epoch, because the answer to the next Attach contains the same information. "No session"
// leads from every phase to opening, with a fresh nonce.
//
// A request gets its number when it is sent. Every later Attach names that number for as long as
// the caller wants the request. So cancels, releases, duplicates and lost frames need no
// bookkeeping. An entry that Attach does not name is freed. A request that Attach names but that
// the answer does not report is sent again under a new number, at its old place among the requests
// of this client.
//
// # Guarantees
//
//   - A call that returns an error holds nothing, now or later. A grant that crosses the end of its
//     context is given back. So is a grant that leaves less than TTL/10 of the lease; its request
//     is sent again.
//   - [Hold.Err] reports a loss by the clock, even before any timer has fired.
//   - A hold that was once reported lost is never reported held again: [Client] marks lost holds
//     before it publishes a deadline that was extended, and Err reads in the opposite order.
//   - Requests of one client are sent, and sent again, in the order of the calls.
//   - A client attaches only to a voter that it knows, or to the leader that such a voter has
//     named. Otherwise any instance could pose as the leader and acknowledge leases. An answer to
//     Open counts only from an instance to which this nonce was sent.
//
// # Concurrency
//
// Client and Hold are safe for concurrent use; Core is not. One goroutine owns the core. All others
// append to an inbox and wake it. A turn handles the whole inbox and sends one frame, or a few
// frames if very many requests wait. No mutex is held while waiting. The goroutine calls the
// functions of the configuration, which may call back.
//
// # Failure
//
// A leader that was paused while others were elected does not know the sessions of later terms. The
// client ignores its answers about such sessions and asks another voter. At the deadline the client
// sends the release of every held lock; waiting requests stay.
//
// # Limits
//
// A client has at most 65,536 pending calls and unconfirmed releases, not counting held locks, and
// at most 8 MiB of keys in waiting calls. Calls beyond that fail with ErrOverloaded before they get
// a number. At most 1 MiB of requests is sent ahead of its answers. In one turn it reads at most 64
// MiB from its leader and 1 MiB from all other instances together.
//
// # Refused alternative
//
// Numbering requests when they are made, rather than when they are sent, would need a rule for
// numbers that were never sent.
package client
