// Package session holds both ends of a lease: the [Client], one on every instance, and the [Keeper], one on every voter, which is at
// work on the leader.
//
// A client opens one session for its instance, keeps it alive by renewals, asks for locks in it, and tells its callers when a lock can
// no longer be trusted. A keeper passes the commands of clients on to the log, passes the results back, and ends sessions whose
// clients have fallen silent. What the commands mean is said by lockfsm alone.
//
// Each end is a pure core, [ClientCore] and [KeeperCore], in a thin shell. The cores decide everything; the shells, in client.go,
// keeper.go and hold.go and no other file, own the clock, the goroutine and the callers.
//
// A request is that of a mutex unless it has [Terms]: further keys, permits, an owner, and what else lockfsm.Command says of an Acquire. Of these
// the client knows only the owner, which it names by the number of another request, and Longest, which it counts itself. A keeper passes them on
// unread, and passes three more things back: the circle that a request would close, the word that somebody waits for what a request holds, and
// the end of one by force.
//
// # The phases of a client
//
//	           nobody to ask, or told to wait
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
// Open and Attach are themselves the question "do you lead?". A voter that does not lead redirects to who does, or to nobody, and
// remembers the asker: as soon as a leader is known, he is told. Each attachment has an epoch of its own; what is said of another is
// ignored, because the next Attach asks for it again. "No session" leads from anywhere to opening, with a fresh nonce.
//
// A request gets its number when it is sent, and is named by every later Attach for as long as its caller wants it. So nothing about
// cancels, releases, duplicates and lost frames needs to be remembered: what Attach does not name is free, what it names and is not
// reported is asked anew under a new number, at its old place among the requests of this client.
//
// # The trust window
//
//	             sent   arrives      acknowledged                  jeopardy         deadline      keeper may expire
//	client  ------|--------------------|------------------------------|----------------|-----------------|----->
//	              |<---- 2/3 TTL ------------------------------------>|                |                 |
//	              |<---- TTL - TTL/50 -------------------------------------------------+                 |
//	keeper  ---------------|---------|---------------------------------------------------------------- ->|
//	                    round of  renewed |<---- TTL --------------------------------------------------->|
//	                    a quorum
//
// The client's deadline is the time at which it sent the last acknowledged renewal, plus the TTL, less a margin of TTL/50. It does
// not matter how long the answer took. The answer to Open counts from the first sending of its nonce. The keeper's deadline is a TTL after
// the acknowledgement, which is later than the sending; so the holder's window ends first as long as two clocks differ in rate by at
// most 2%, and no two clocks are ever compared. A renewal is acknowledged only if, behind its arrival, a quorum has confirmed that
// this keeper leads, everything committed by then is applied, and the session is there, at the epoch of this attachment, and not
// marked to expire. A new leader gives every session its full TTL.
//
// A client that is heard and hears nothing, cut off in one direction, must not be kept alive by its renewals: it could be granted a lock,
// never know, and keep it. So each renewal names the newest answer of the keeper that the client has heard, an acknowledgement or the
// Attached of an attachment, and it counts only if that was sent less than a TTL ago by the keeper's clock. Otherwise it is as if it had not
// come: it is not acknowledged, and the deadline runs. So the session is over two TTLs after its client went deaf. This is kept with the
// session and not with the attachment, because a deaf client attaches again and again. Whose lease still runs has heard something that
// was sent less than a TTL ago; who hears again names the Attached of his last attachment with the next.
//
// At the deadline every held lock is lost, for ever, also if the session turns out to live on: its release is sent, and [Hold.Err] says
// so by the clock, before any timer has fired. Waiting requests stay. A grant with less than TTL/10 left is given back and waited for anew.
//
// # Guarantees
//
//   - A holder learns that its lock is lost before anybody else can be granted it.
//   - A call that returns an error holds nothing, now or later. A grant that crosses the end of a context is given back.
//   - A hold that was once reported lost is never reported held again: [Client] marks lost holds before it publishes a deadline that
//     was extended, and Err reads in the opposite order.
//   - Requests of one client are sent in the order of the calls, and keep that order when they are asked anew.
//   - An expiry is proposed in the term in which it was decided or never, and never over a renewal that has arrived. No client's
//     command is proposed in another term than that of its arrival.
//   - Whatever a peer sends, no other peer's attachment suffers, and only commands that clients may send reach the log.
//   - A session belongs to the instance that opened it, by the ID that its connection has proved,
//     and to the capability of its certificate. The leader writes both into the log with Open.
//     Attach, renewals and commands from any other instance are refused, whatever it knows. The
//     nonce makes Open idempotent and proves nothing: every voter has it, and so has every
//     snapshot.
//   - What a session's record claims is checked when its Open arrives ([KeeperCore].Vouch): the
//     instance and the address in it are those of the connection, or none.
//   - A client attaches only to a voter that it knows, or to the leader that such a voter has
//     named. Another instance could have itself taken for the leader, and acknowledge leases. An
//     answer to Open counts only from an instance to which this nonce was sent.
//
// What these rest on is the transport, which proves the ID at both ends of every connection, and
// the voters. A voter that lies can confirm leases that it does not keep. No other instance, member
// or guest can, and strangers do not get here.
//
// A peer that is no full instance gets only locks whose keys its certificate grants, each key of each request, and its sessions belong
// to that capability: they cannot be attached under another.
//
// # Concurrency
//
// Client, Keeper and Hold are safe for concurrent use; the cores are not. Each shell has one goroutine that owns its core. Everybody
// else appends to an inbox and wakes it; a turn takes the inbox in whole, so each turn makes at most one proposal, one quorum round and
// one frame per peer (a few, if there is very much to say). No lock is held while waiting. The functions in the configurations are
// called by these goroutines and may call back.
//
// # Failure
//
// Lost frames, streams that end, leaders that change and duplicates are settled by the next Attach. A keeper that cannot hand on one
// command or one reply of an attachment ends the attachment and says so until it is heard. A keeper that is held up (a turn 300 ms or
// more after the one before, while it looks at the deadlines every 100 ms) adds the gap to every deadline, because renewals may have
// been waiting where it did not look. It looks that often only in the last second before a deadline; before that it may sleep, and what
// arrived during a stall is read in that second. A copied process is found out by the epoch: the later attachment wins, the other
// copy is told that it is stale and opens a session of its own. A leader that stood still while others were elected does not know the
// sessions of later terms: what it says of them is not believed, and the client asks another voter. A client that reaches a majority of the voters but not the leader loses
// its locks, cleanly.
//
// Where the machine's clock stands still while the machine is suspended (everywhere but on Linux), a suspended holder believes in its
// locks for as long as it slept; tokens protect the resource.
//
// # Limits
//
// A client has at most 65,536 calls and unconfirmed releases under way, held locks not counted, and 8 MiB of keys in calls that wait;
// more is ErrOverloaded before a number is given. At most 1 MiB of requests is sent ahead of its answers. A keeper takes 1,024
// attachments, 256 living sessions and 8 MiB of waiting commands from one peer, 32 MiB from all, and remembers 4,096 askers. Of the
// renewals of one attachment it keeps the newest, and of what a session has been told and has not named yet the newest 8. Of what arrives
// during one turn it reads 8 MiB of a peer and 64 MiB in all; a client reads 64 MiB of its leader and 1 MiB of everybody else.
//
// # Refused alternative
//
// A lease per lock would let a slow lock expire alone, at the price of a renewal per lock and a quorum round or log entry for each. A
// lease in the log (etcd's checkpoints) would spare a new leader the full TTL, at the price of a log entry per renewal. Answering
// renewals by the leader's own lease (ReadOnlyLeaseBased) would spare the quorum round, and make safety rest on comparing two clocks;
// a round costs 30 microseconds and serves all sessions at once. Numbering requests when they are made, rather than when they are
// sent, would need a rule for every number that was never sent.
package session
