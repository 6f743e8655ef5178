// Package discovery says where other instances may be: it turns the entries of Join into addresses,
// again and again, and says to people which entries lead to no instance.
//
// An entry has one of four forms ([Check]): a host, a service (SRV records), a file with a list,
// and beside the entries a function of the user. All of them lead to lines host:port, and the hosts
// of these to IP addresses.
//
//	entry ──▶ list of host:port ──▶ IP addresses of each host ──▶ Result ──▶ Join ──▶ Entries, Trouble
//	          DNS, file, function   DNS, 16 at a time
//	          └───────────── Attempt.Run ─────────────┘
//
// [Join] says which lookups are due ([Join.Due]); its owner carries them out elsewhere
// ([Attempt.Run]), and hands it what they have found ([Join.Take]). [Lookup] does it once, for a
// program that is no instance.
//
// # Guarantees
//
// Entries are looked up for ever: every second without a leader, every two seconds if they come
// from a function, every ten with a leader. Each pause is up to a quarter longer at random.
//
// No addresses is an answer. A lookup that has failed, a file that is not there or cannot be read
// whole, and a function that panics or does not return, are none: the entry then says why
// (Entry.Failed), keeps the addresses that were known, and does not count as resolved. If one host
// of a list fails, the others count.
//
// A list counts as a whole or not at all. A changed file counts once it has stayed the same for 200
// ms.
//
// # Concurrency
//
// A Join has one owner, which alone calls its methods. No method blocks. Attempt.Run blocks, for
// three seconds at most, and is to be called on a goroutine of its own. It starts one more
// goroutine for each lookup under way. That one may outlive Run if the user's function or the disk
// does not heed its context; there is one of these for each entry at most.
//
// # Failure
//
// Whatever goes wrong is a text in Entry.Failed, one line of at most 300 bytes, and completes what
// the instance waits for ([Join.Trouble]). A panic of the user's function is also logged with its
// stack, once a minute at most.
//
// # Limits
//
// An entry leads to at most 1,024 addresses, and a file has at most 64 KiB; more is a failure,
// since to leave addresses out could be to leave out a group. An address has at most 200 bytes. A
// program that writes a file in place, and pauses for more than 200 ms between two lines, is read
// too soon.
//
// # Refused alternatives
//
// Names that are resolved once, at the start: instances move. A watch on files and records: the
// systems differ, and a lookup that is repeated needs no second way for what a watch has missed.
package discovery
