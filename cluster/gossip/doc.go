// Package gossip finds out which instances run. It wraps memberlist; no other package imports
// memberlist.
//
// Each instance tells a few things about itself ([Meta]) and receives what others tell about
// themselves ([News]). Gossip is advice: it names members, addresses and groups for people to read
// and for other packages to ask. It decides nothing.
//
//	Tell ──▶ Meta ──▶ memberlist ◀── parcels (bounds) ◀── wire ◀── Net: packets, streams
//	                      │
//	                      └──▶ roster (bounds) ──▶ unread, the latest of each member ──▶ News(), Take
//
// # Guarantees
//
// Memory and work are bounded, whatever holders of the label send. Packets and streams are checked
// by their shape before memberlist decodes them. A member is accepted only while there is room. The
// owner is woken for news at most every 50 ms. Instances that were seen before stay visible.
//
// Addresses may contain names. Inside memberlist, which knows only IP addresses, an address in the
// discard prefix 100::/64 represents a name. So a lost translation reaches no other machine.
//
// # Concurrency
//
// There are two pump goroutines, from Net to memberlist, and memberlist's own. Close returns when
// the pumps have ended and memberlist's have nothing left to wait for. memberlist calls its
// delegates under its own lock, so they only copy and record, and [Config].News must not block. A
// timer of at most 50 ms may still call News after Close.
//
// # Failure
//
// A packet that cannot be sent is lost. A member of another version, or with unreadable meta data,
// is not shown. A member beyond the limit is ignored, which is logged once a minute. Two halves
// that were cut off from each other for long do not meet again by themselves, since memberlist
// forgets dead members after half a minute. The user of this package has to Join missing addresses.
//
// # Limits
//
// Meta data has at most 512 bytes, so a name and a zone have at most 128 and an address 200. At
// most 4,096 members are accepted, including those that left a short while ago; each costs 0.6 KB.
// A packet has at most 4 KiB and one level of nested messages. A full exchange has at most 4 MiB
// and 8,192 members. Compressed messages are dropped.
//
// # Refused alternatives
//
// memberlist's own transport: it needs a second port and has its own encryption. memberlist's push
// of user data: what matters is asked directly, of the one instance that it is about.
package gossip
