// Package discovery finds addresses of other instances. It resolves the entries of Join repeatedly,
// and reports which entries lead to no instance.
//
// An entry has one of three forms ([Check]): a host, a service (SRV records), or a file with a
// list. A user's function may add addresses.
//
//	entry ──▶ list of host:port ──▶ IP addresses of each host ──▶ Result ──▶ Join
//	          DNS, file, function   DNS, 16 at a time                        │
//	          └───────────── Attempt.Run ─────────────┘                      └──▶ Entries, Trouble
//
// [Join] decides which lookups are due ([Join.Due]). Its owner runs them on other goroutines
// ([Attempt.Run]) and passes it the results ([Join.Take]). [Lookup] does one lookup for a program
// that is no instance.
//
// # Guarantees
//
// Entries are looked up forever: every second without a leader, every two seconds if they come from
// a function, every ten with a leader. Each pause is up to a quarter longer at random.
//
// An empty result is an answer. A failed lookup is none; nor is a file that is missing or cannot be
// read completely, or a function that panics or does not return. Then Entry.Failed is the reason,
// the entry keeps its known addresses, and it does not count as resolved. If one host of a list
// fails, the others count.
//
// A list counts as a whole or not at all. A changed file counts once it has stayed the same for 200
// ms.
//
// # Concurrency
//
// A Join has one owner, and only the owner may call its methods. No method blocks. Attempt.Run
// blocks for at most three seconds. It starts one more goroutine for each lookup, which may outlive
// Run if the user's function or the disk ignores the context. There is at most one of these for
// each entry.
//
// # Failure
//
// Every failure is a text in Entry.Failed, one line of at most 300 bytes, and is part of what the
// instance waits for ([Join.Trouble]). A panic of the user's function is also logged with its
// stack, at most once a minute.
//
// # Limits
//
// An entry leads to at most 1,024 addresses, and a file has at most 64 KiB. More is a failure,
// since dropping addresses could drop a group. An address has at most 200 bytes. A file that is
// written in place, with a pause of more than 200 ms between two lines, is read too soon.
//
// # Refused alternatives
//
// Resolving names once, at the start: instances move. Watching files and records: systems differ,
// and a repeated lookup needs no second mechanism for what a watch has missed.
package discovery
