// Package gossip says which instances are here: it wraps memberlist, and no other package imports
// it.
//
// Each instance says a few things about itself ([Meta]), and hears what others say about themselves
// ([News]). It is advice: it names members, addresses and groups for people to read and for others
// to ask. Nothing is decided by it.
//
//	Tell ──▶ Meta ──▶ memberlist ◀── parcels (bounds) ◀── wire ◀── Net: packets, streams
//	                      │
//	                      └──▶ roster (bounds) ──▶ unread, a member's latest word ──▶ News(), Take
//
// # Guarantees
//
// Whatever holders of the label send, memory and work are bounded: packets and streams are judged
// by their shape before memberlist decodes them, a member is taken in only while there is room, and
// the owner is woken for news every 50 ms at most. Instances that were seen before go on being
// seen.
//
// Names may stand for addresses: inside memberlist, which knows IP addresses only, a name is an
// address in the discard prefix 100::/64, so that a translation that was forgotten reaches no other
// machine.
//
// # Concurrency
//
// These goroutines exist: two pumps, from Net to memberlist, and memberlist's own. Close ends all
// of them, and returns when the pumps have ended and memberlist's have nothing left to wait for.
// memberlist calls its delegates under its own lock, so they copy, note and return: [Config].News
// must not block. A timer of at most 50 ms may still call it after Close.
//
// # Failure
//
// A packet that cannot be sent is lost. A member of another version, or whose meta data cannot be
// read, is not shown. A member that does not fit is not seen, which is logged once a minute. Two
// halves that were cut off from each other for long do not meet again by themselves, since
// memberlist forgets the dead after half a minute: the user of this package has to Join addresses
// that are missing.
//
// # Limits
//
// Meta data has 512 bytes, which is why a name and a zone have at most 128 and an address 200.
// 4,096 members are taken in, with those that left a short while ago; one costs 0.6 KB. A packet
// has at most 4 KiB and one level of messages; an exchange of everything at most 4 MiB and 8,192
// members; nothing may be compressed.
//
// # Refused alternatives
//
// memberlist's own transport: a second port, with an encryption of its own. Its push of user data:
// what matters is asked directly, of the one instance that it is about.
package gossip
