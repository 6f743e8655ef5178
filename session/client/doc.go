// Package client is an instance's end of a session: it finds the leader, keeps one lease alive, and
// takes locks in it.
//
// [Core] decides everything, as a plain value in memory; [Client] is the thin shell around it, and
// [Hold] one lock that it was granted. The shells, in client.go, inbox.go, hold.go and waiter.go
// and in no other file, own the clock, the goroutine and the callers. The trust window, which is
// the promise of the lease, is in the comment of package session.
//
// A request is that of a mutex unless it has [Terms]: further keys, permits, an owner, and what
// else lockfsm.Command says of an Acquire. Of these the client knows only the owner, which it names
// by the number of another request, and Longest, which it counts itself.
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
// Open and Attach are themselves the question "do you lead?". A voter that does not lead redirects
// to the leader that it knows, or to none, and remembers the client: as soon as a leader is known,
// it tells the client. Each attachment has an epoch of its own; a reply about another epoch is
// ignored, because the next Attach asks for it again. "No session" leads from anywhere to opening,
// with a fresh nonce.
//
// A request gets its number when it is sent, and is named by every later Attach for as long as its
// caller wants it. So nothing about cancels, releases, duplicates and lost frames needs to be
// remembered: what Attach does not name is free, and what it names and is not reported is asked
// anew under a new number, at its old place among the requests of this client.
//
// # Guarantees
//
//   - A call that returns an error holds nothing, now or later. A grant that crosses the end of a
//     context is given back. So is a grant with less than TTL/10 left, which is then asked anew.
//   - [Hold.Err] reports a loss by the clock, before any timer has fired.
//   - A hold that was once reported lost is never reported held again: [Client] marks lost holds
//     before it publishes a deadline that was extended, and Err reads in the opposite order.
//   - Requests of one client are sent in the order of the calls, and keep that order when they are
//     asked anew.
//   - A client attaches only to a voter that it knows, or to the leader that such a voter has
//     named. Another instance could have itself taken for the leader, and acknowledge leases. An
//     answer to Open counts only from an instance to which this nonce was sent.
//
// # Concurrency
//
// Client and Hold are safe for concurrent use; Core is not. One goroutine owns the core. All others
// append to an inbox and wake it. A turn takes the whole inbox, and sends one frame (a few, if
// there is very much to say). No lock is held while waiting. The goroutine calls the functions of
// the configuration, which may call back.
//
// # Failure
//
// A leader that stood still while others were elected does not know the sessions of later terms:
// what it says of them is not believed, and the client asks another voter. At the deadline the
// release of every held lock is sent, and waiting requests stay.
//
// # Limits
//
// A client has at most 65,536 calls and unconfirmed releases under way, held locks not counted, and
// 8 MiB of keys in calls that wait; more is ErrOverloaded before a number is given. At most 1 MiB
// of requests is sent ahead of its answers. Of what arrives during one turn it reads 64 MiB of its
// leader and 1 MiB of all other instances together.
//
// # Refused alternative
//
// Numbering requests when they are made, rather than when they are sent, would need a rule for
// every number that was never sent.
package client
