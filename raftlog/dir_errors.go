package raftlog

import "errors"

// The kinds of error of a Dir, beside ErrStorage and ErrCorrupt. All are met with errors.Is; what is returned wraps them with the path and the way out.
var (
	// ErrDirInUse is returned by OpenDir if another process, or this one, has the directory open.
	ErrDirInUse = errors.New("raftlog: the directory is in use")

	// ErrDirLost is returned by Dir.Look if the directory was removed, or another one is in its place.
	ErrDirLost = errors.New("raftlog: the directory was removed or replaced")

	// ErrDirCopied is returned by OpenDir if the directory is a copy, or was restored from one.
	ErrDirCopied = errors.New("raftlog: the directory is a copy")

	// ErrEnded is returned by Dir.Log for a raft ID whose log has ended in that directory: it lives once.
	ErrEnded = errors.New("raftlog: this log has ended")

	// ErrLogOpen is returned by Dir.Log and Dir.DropLog while the log that Log has returned is not closed.
	ErrLogOpen = errors.New("raftlog: the directory's log is open")
)
