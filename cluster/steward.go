package cluster

import (
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/cluster/voters"
)

// This file is how the host says that there is something to see, and how a step reaches its log.

// Look says that what Host.Facts returns may have changed: a role, a session, a link, the progress
// of a replica. It is cheap, and may be called on any goroutine as often as it happens.
func (c *Cluster) Look() {
	if c.looking.Swap(true) {
		return
	}
	c.in.post(func() {
		c.looking.Store(false) // before the facts are read: what changes from now on asks for another look
		c.own.core.Look()
	})
}

// Report returns how the voters stood at the last look, if this instance leads. Its slices must not
// be changed.
func (c *Cluster) Report() (voters.Report, bool) {
	if r := c.view.Load().standing; r != nil {
		return *r, true
	}
	return voters.Report{}, false
}

// carry hands a step to the log, and says so.
func (c *Cluster) carry(o lead.Carry) {
	if o.Again {
		c.cfg.Logger.Debug("changing the voters, again", "step", o.Step.Kind.String(), "why", o.Step.Why)
	} else {
		args := []any{"step", o.Step.Kind.String(), "why", o.Step.Why}
		if o.Step.Kind == voters.AddLearner {
			args = append(args, "instance", o.About.Instance, "addr", o.About.Addr)
		}
		c.cfg.Logger.Info("changing the voters", args...)
	}
	c.cfg.Host.Carry(o.Term, o.Step, o.About)
}
