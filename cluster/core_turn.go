package cluster

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/lead"
)

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

// Turn runs one turn of the core and makes the owner carry out its decisions. The result is the
// latest time for the next turn. fresh is a raft ID that was never used. word is a random number.
func (c *Core) Turn(
	now time.Duration, wallUnixMS int64, random founding.Random, fresh, word uint64, o Owner,
) time.Duration {
	out := c.Tick(now, wallUnixMS, random)
	if o.Store(&out); o.Ended() {
		return 0
	}
	if o.Tell(c.Follow(now, out.Events)); o.Ended() {
		return 0
	}
	acts := c.Act(now, fresh, word)
	if o.Ended() {
		return 0
	}
	for _, q := range out.Questions {
		o.Question(q)
	}
	acts.carry(o)
	return min(out.Next, acts.Next)
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
