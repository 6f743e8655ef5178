package cluster

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/lead"
)

// Acts are the actions of a turn in addition to the events for the host. They may be carried out
// concurrently.
type Acts struct {
	Carry     []lead.Carry // steps for the log
	Tasks     []Task       // their outcomes are passed to Done or StatusReplied
	Gossip    []string     // addresses to gossip with; call Gossiped when an attempt has ended
	Told      []Told
	Dismissed uint64        // a removed replica that may stop now; zero means none
	Next      time.Duration // latest time of the next turn, unless founding needs an earlier turn
}

// Owner carries out what a Core decides in a turn, in the order of these methods.
type Owner interface {
	// Store makes Founding.State durable before the effects of the output become visible. If
	// storing fails, Store replaces the output by the result of Core.Unsaved.
	Store(*founding.Output)
	// Ended reports whether the instance has ended. If so, Turn returns without further actions.
	Ended() bool
	Tell([]founding.Event)
	// Question sends a question of package founding, and passes the outcome to Core.Result.
	Question(founding.Question)
	Carry(lead.Carry)
	// Task asks a question and passes the outcome to Core.Done or Core.StatusReplied.
	Task(Task)
	// Gossip gossips with an address, and then calls Core.Gossiped.
	Gossip(addr string)
	// Told delivers the answer to an inquiry.
	Told(Told)
	// Dismiss ends a removed replica.
	Dismiss(raft uint64)
}

func (a *Acts) carry(o Owner) {
	for _, step := range a.Carry {
		o.Carry(step)
	}
	for _, e := range a.Tasks {
		o.Task(e)
	}
	for _, addr := range a.Gossip {
		o.Gossip(addr)
	}
	for _, told := range a.Told {
		o.Told(told)
	}
	if a.Dismissed != 0 {
		o.Dismiss(a.Dismissed)
	}
}

func (a *Acts) step(s lead.Carry) { a.Carry = append(a.Carry, s) }

func (a *Acts) task(e Task) { a.Tasks = append(a.Tasks, e) }

func (a *Acts) gossip(addrs []string) { a.Gossip = addrs }

func (a *Acts) tell(t Told) { a.Told = append(a.Told, t) }

func (a *Acts) dismiss(raft uint64) { a.Dismissed = raft }

// end returns the actions of a turn of the given incarnation.
func (a *Acts) end(next time.Duration, life uint64) Acts {
	a.Next = next
	for i, e := range a.Tasks {
		a.Tasks[i] = e.of(life)
	}
	return *a
}
