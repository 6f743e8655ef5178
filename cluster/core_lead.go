package cluster

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
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

// Look records that the result of OwnState.Facts may have changed, so that the core reads it again.
func (c *Core) Look() { c.wanted = true }

// govern evaluates the voters if an evaluation is due, and returns when the next one is due. Before
// the group is born, no instance may change the group's voters.
func (c *Core) govern(now time.Duration, fresh uint64) time.Duration {
	if !c.settled() {
		return now + idle
	}
	if c.lead.Due(now, c.wanted) <= now {
		c.observe(now, fresh)
	}
	return c.lead.Due(now, c.wanted)
}

func (c *Core) observe(now time.Duration, fresh uint64) {
	c.wanted = false
	facts, term, leads := c.cfg.OwnState.Facts()
	if !leads {
		c.lead.Rest(now)
		c.report = nil
		return
	}
	orders := c.lead.Look(now, facts, term, fresh)
	report := c.lead.Report()
	c.report = &report
	if orders.Carry != nil {
		c.acts.Carry = append(c.acts.Carry, *orders.Carry)
	}
	if step := orders.Prepare; step != nil {
		body := c.lead.Question(*step, c.Founding.Group(), c.book.At(), c.book.Voters())
		c.task(Task{To: step.Instance, Addr: c.lead.Where(step.Instance), Body: body, Prepare: step})
		c.wanted = true // another Prepare may be due
	}
	for _, p := range orders.Probes {
		c.task(Task{To: p.Instance, Addr: p.Addr, probe: &p})
	}
}

func (c *Core) task(e Task) {
	if e.Addr == "" || c.cfg.Founding.Settings.Solo {
		return
	}
	e.term = c.lead.Term()
	c.acts.Tasks = append(c.acts.Tasks, e)
}

// Done records the outcome of a task. from is the proven ID of the instance that answered, if one
// did. declined is the reason why an instance does not start a replica.
func (c *Core) Done(now time.Duration, e Task, outcome founding.Outcome, from nodeid.ID,
	answer []byte) (declined string) {
	look := false
	switch {
	case e.life != c.life: // of an earlier incarnation: nothing waits for it
	case e.pushed != nil:
		c.pushed(now, e.pushed, outcome)
	case e.attached:
		c.spread.telling-- // if the push was lost, that instance itself asks later
	case e.Prepare != nil:
		look, declined = c.lead.Answered(now, e.term, *e.Prepare, outcome, answer)
	case e.probe != nil:
		look = c.lead.Probed(now, e.term, *e.probe, outcome, from)
	}
	c.wanted = c.wanted || look
	return declined
}

// PeerLost records that an instance has reported, on its own connection, that its replica has
// ended. If the instance has a directory, the next process may resume the replica.
func (c *Core) PeerLost(now time.Duration, instance nodeid.ID) {
	c.Founding.Departed(now, instance)
	if c.lead.PeerLost(instance, c.book.Voters()) {
		c.wanted = true
	}
}

// Report returns the state of the voters at the last evaluation, or nil if this instance does not
// lead. The caller must not change it.
func (c *Core) Report() *voters.Report { return c.report }
