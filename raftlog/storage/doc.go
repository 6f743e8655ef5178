// Package storage keeps a replica's log in a directory: [Dir.Log] returns a raftlog.Store that
// survives the end of its process.
//
// A directory holds a segmented log (wal.go), snapshot files, and one bbolt file for small records,
// including those of other packages (meta.go). Log and snapshots use the disk through [FS], so that
// a test can fail or delay operations and simulate a power loss.
//
// # Guarantees
//
//   - A Save is durable when it returns. After a crash its batch exists completely or not at all.
//   - Acknowledged data is never dropped silently: if a crash cannot have caused the damage, the
//     log fails with raftlog.ErrCorrupt.
//   - A raft ID is used once: opening a log that has ended in the directory fails with [ErrEnded].
//   - Only one process can have the directory open. A copy of the directory is refused if the file
//     system makes it recognizable ([Dir]).
//   - Space for the log is reserved in advance, segment by segment.
//
// # Concurrency
//
// The methods of Dir are safe for concurrent use. The Store follows the rules of raftlog.Store.
// Only Look starts a goroutine, which ends when the disk answers.
//
// # Failure
//
// A disk error wraps raftlog.ErrStorage. It is final for the log, or for the records, until the
// process ends, because after a failed sync the contents of the disk are unknown. If the disk does
// not answer, Close fails with raftlog.ErrHung after 5 s, and Look after its limit.
//
// # Limits
//
// Only one log can be open. The directory remembers the last 256 logs.
//
// # Refused alternatives
//
//   - The log in bbolt: each append would write whole pages twice. Large snapshots would make the
//     file grow forever and would be read without a checksum.
//   - etcd's wal package: it would add 25 modules to every user's build.
package storage
