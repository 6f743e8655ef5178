// Package swim finds out which instances run: it implements package gossip with memberlist, which
// follows the SWIM protocol (Das, Gupta and Motivala, 2002). No other package imports memberlist.
//
// Each instance publishes data about itself ([gossip.Meta]) and receives the data of the others
// ([gossip.News]). Other packages use these data to find addresses to ask. Gossip makes no
// decisions.
//
//	Tell ──▶ Meta ──▶ memberlist ◀── parcels (bounds) ◀── wire ◀── Net: packets, streams
//	                      │
//	                      └──▶ roster (bounds) ──▶ unread, the latest of each member ──▶ News(), Take
//
// # Guarantees
//
// Memory and work are bounded, whatever a process with the label sends. Packets and streams are
// checked before memberlist decodes them. New members are accepted only up to a limit; members that
// are known already remain visible. Config.News is called at most every 50 ms.
//
// Addresses may contain names. memberlist supports only IP addresses, so inside memberlist an
// address in the discard prefix 100::/64 represents a name.
//
// # Concurrency
//
// Two pump goroutines pass packets and streams from Net to memberlist, which starts further
// goroutines. memberlist begins with the first Join, packet or stream, so an instance that is alone
// does not pay for its timers. Close returns when the pumps have ended and no goroutine of
// memberlist waits any more. memberlist calls its delegates under its own lock, so they only copy
// and record. A timer of at most 50 ms may still call News after Close.
//
// # Failure
//
// A packet that cannot be sent is lost. A member is not reported if it has another version or
// unreadable metadata. A member beyond the limit is ignored, which is logged once a minute.
// memberlist forgets dead members after half a minute, so after a long partition the user of this
// package has to call Join with the missing addresses.
//
// # Limits
//
// The metadata of a member has at most 512 bytes. At most 4,096 members are accepted, including
// those that left recently; each costs 0.6 KB. A packet has at most 4 KiB and one level of nested
// messages. A full exchange has at most 4 MiB and 8,192 members. Compressed messages are dropped.
//
// # Refused alternatives
//
// memberlist's own transport would need a second port and has its own encryption. memberlist's
// messages for user data are not needed, because important questions are sent directly to the
// asked instance.
package swim
