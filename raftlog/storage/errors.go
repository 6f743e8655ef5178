package storage

import "errors"

// Errors of a Dir, besides raftlog.ErrStorage and raftlog.ErrCorrupt. Match them with errors.Is.
var (
	// ErrInUse is returned by Open if this or another process has the directory open.
	ErrInUse = errors.New("storage: the directory is in use")

	// ErrLost is returned by Dir.Look if the directory was removed or replaced.
	ErrLost = errors.New("storage: the directory was removed or replaced")

	// ErrCopied is returned by Open if the directory is a copy or was restored from a copy.
	ErrCopied = errors.New("storage: the directory is a copy")

	// ErrEnded is returned by Dir.Log for a raft ID whose log has ended in that directory.
	ErrEnded = errors.New("storage: the log of this raft ID has ended")

	// ErrLogOpen is returned by Dir.Log and Dir.DropLog while a log is open.
	ErrLogOpen = errors.New("storage: the directory's log is open")
)
