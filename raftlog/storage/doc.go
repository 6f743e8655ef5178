// Package storage keeps a replica's log in a directory: [Dir.Log] returns the raftlog.Store that
// survives the end of its process. Beside the log the directory keeps small records of other rooms.
//
// What it is: a segmented log of our own with a checksum in each frame (wal.go has the format and
// what a crash at each point leaves), files for snapshots, and one bbolt file for what is small and
// rare (meta.go). [FS] is the way of log and snapshots to the disk, so that a test can fail it,
// delay it, and take the power away at any point.
//
// # Guarantees
//
//   - A Save is durable when it returns, and after a crash all of it is there or nothing.
//   - What was acknowledged is never taken back without a word: damage that is not the mark of a
//     crash is refused as raftlog.ErrCorrupt. wal.go says which damage cannot be told from a crash.
//   - A raft ID lives once: a log that has ended in a directory is refused as [ErrEnded].
//   - One process at a time has the directory, and a copy of it is refused as far as the file
//     system can tell ([Dir]).
//   - Room for the log is reserved in advance, a segment at a time.
//
// # Concurrency
//
// The methods of Dir are safe for concurrent use. The Store is used as raftlog.Store says: Prepare
// may run beside Save. There is no goroutine here but that of a Look, which ends when the disk
// answers; Close waits for none that hangs on the disk.
//
// # Failure
//
// An error of the disk wraps raftlog.ErrStorage and is final for the log, or for the records, as
// long as the process lives: after a failed sync nobody knows what the disk holds. Each message
// names the path and the way out. A disk that does not answer is raftlog.ErrHung, from Close after
// 5 s and from Look after its limit.
//
// # Limits
//
// One log can be open; 256 ended ones are remembered. A segment has 16 KiB to 1 GiB, 8 MiB by
// default. The records have 4 MiB together.
//
// # Refused alternatives
//
// The log in bbolt: each append would write whole pages twice, and a snapshot of megabytes would
// make its file grow for ever and be read through a memory map without any checksum. etcd's wal
// package: every user would get 25 more modules with it.
package storage
