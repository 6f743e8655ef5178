package cluster

import (
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Task is a question to another instance about the voters or their configuration.
type Task struct {
	To   nodeid.ID
	Addr string
	Body []byte // a message of founding; a task without Body and Query is a probe

	Prepare *voters.Step // set if the task asks for a replica
	term    uint64       // term in which the leader decided the task

	probe    *voters.Probe
	pushed   *pushing
	attached bool

	life    uint64       // of the core, when it decided the task
	Query   *StatusQuery // set for a status query; its outcome is passed to StatusReplied, not to Done
	inquiry *Inquiry
}

// in returns the task as one of a leader's term.
func (e Task) in(term uint64) Task {
	e.term = term
	return e
}

// of returns the task as one of an incarnation.
func (e Task) of(life uint64) Task {
	e.life = life
	return e
}
