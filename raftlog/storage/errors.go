package storage

import "errors"

// The kinds of error of a Dir, beside raftlog.ErrStorage and raftlog.ErrCorrupt. All are met with
// errors.Is; what is returned wraps them with the path and the way out.
var (
	// ErrInUse is returned by Open if another process, or this one, has the directory open.
	ErrInUse = errors.New("storage: the directory is in use")

	// ErrLost is returned by Dir.Look if the directory was removed, or another one is in its place.
	ErrLost = errors.New("storage: the directory was removed or replaced")

	// ErrCopied is returned by Open if the directory is a copy, or was restored from one.
	ErrCopied = errors.New("storage: the directory is a copy")

	// ErrEnded is returned by Dir.Log for a raft ID whose log has ended in that directory: it lives
	// once.
	ErrEnded = errors.New("storage: this log has ended")

	// ErrLogOpen is returned by Dir.Log and Dir.DropLog while the log that Log has returned is not
	// closed.
	ErrLogOpen = errors.New("storage: the directory's log is open")
)
