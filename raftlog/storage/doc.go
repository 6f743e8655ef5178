// Package storage keeps a replica's log in a directory: [Dir.Log] returns a raftlog.Store that
// survives the end of its process.
//
// A directory consists of a segmented log (wal.go describes the format and the effect of a crash at
// each point), snapshot files, and one bbolt file for small and rarely written records, also of
// other packages (meta.go). Log and snapshots use the disk through [FS], with which a test can fail
// or delay operations and simulate a power loss.
//
// # Guarantees
//
//   - A Save is durable when it returns, and after a crash all of it is there or nothing.
//   - Acknowledged data is never dropped silently: damage that a crash cannot have caused fails
//     with raftlog.ErrCorrupt. wal.go lists the damage that cannot be distinguished from a crash.
//   - A raft ID is used once: opening a log that has ended in the directory fails with [ErrEnded].
//   - One process at a time has the directory open. A copy of it is refused where the file system
//     makes it recognizable ([Dir]).
//   - Space for the log is reserved in advance, a segment at a time.
//
// # Concurrency
//
// The methods of Dir are safe for concurrent use, and those of the Store as raftlog.Store
// documents. The only goroutine is that of a Look, which ends when the disk answers.
//
// # Failure
//
// A disk error wraps raftlog.ErrStorage and is final for the log, or for the records, until the
// process ends: after a failed sync the contents of the disk are unknown. Each message names the
// path and what to do. If the disk does not answer, Close fails with raftlog.ErrHung after 5 s, and
// Look after its limit.
//
// # Limits
//
// One log can be open; the directory remembers the last 256 logs. A segment has 16 KiB to 1 GiB, 8
// MiB by default. All records together may take 4 MiB.
//
// # Refused alternatives
//
//   - The log in bbolt: each append would write whole pages twice. Snapshots of megabytes would
//     make the file grow forever, would be read through a memory map without a checksum, and would
//     not go through FS.
//   - etcd's wal package: it would add 25 modules to every user's build.
package storage
