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
// [Join] decides which lookups are due ([Join.Due]). Its owner runs the lookups on other goroutines
// ([Attempt.Run]) and passes their results to [Join.Take]. [Lookup] makes one lookup for a program
// that is not an instance.
//
// # Guarantees
//
// Every entry is looked up again and again: without a leader every second, or every two seconds if
// the entry is a function; with a leader every ten seconds. A random time of up to a quarter is
// added to each pause.
//
// A lookup that finds no address is a success. A lookup fails if the resolver reports an error
// other than a missing name, if a file is missing or not readable, or if a function fails, panics
// or does not return. After a failure the entry keeps its addresses, and does not count as
// resolved. If the lookup of one host of a list fails, the other hosts are used.
//
// A list is used as a whole or not at all. A changed file is used when it has stayed the same for
// 200 ms.
//
// # Concurrency
//
// Only the owner of a Join may call its methods. No method blocks. Attempt.Run blocks for at most
// three seconds. If the user's function or the disk ignores the context, a goroutine of Attempt.Run
// may still run when Run has returned. At most one goroutine remains for each entry.
//
// # Failure
//
// Every failure is stored in Entry.Failed, as one line of at most 300 bytes, and appears in
// Status.Waiting ([Join.Trouble]). A panic of the user's function is also logged with its stack, at
// most once a minute.
//
// # Limits
//
// An entry leads to at most 1,024 addresses, and a file has at most 64 KiB. A longer list fails,
// since without some addresses this instance could miss a group. An address has at most 200 bytes.
// If a file is written in place with a pause of more than 200 ms, the incomplete file may be used.
//
// # Refused alternatives
//
// Resolving names only once, at the start, fails when instances move. Watching files and records
// is not enough, since a watch can miss a change, so lookups must be repeated anyway.
package discovery
