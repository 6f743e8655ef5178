package cluster

import (
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/cluster/voters"
)

// Look records that the result of Host.Facts may have changed: a role, a session, a link, the
// progress of a replica. It is cheap, and may be called as often as needed.
func (c *Cluster) Look() {
	if c.looking.Swap(true) {
		return
	}
	c.in.post(func() {
		c.looking.Store(false) // before the facts are read: a later change triggers another look
		c.own.core.Look()
	})
}

// Report returns the state of the voters at the last look, if this instance leads. Its slices must
// not be changed.
func (c *Cluster) Report() (voters.Report, bool) {
	if r := c.view.Load().standing; r != nil {
		return *r, true
	}
	return voters.Report{}, false
}

func (c *Cluster) carry(o lead.Carry) {
	if o.Again {
		c.cfg.Logger.Debug("retrying a change of the voters", "step", o.Step.Kind.String(), "why", o.Step.Why)
	} else {
		args := []any{"step", o.Step.Kind.String(), "why", o.Step.Why}
		if o.Step.Kind == voters.AddLearner {
			args = append(args, "instance", o.About.Instance, "addr", o.About.Addr)
		}
		c.cfg.Logger.Info("changing the voters", args...)
	}
	c.cfg.Host.Carry(o.Term, o.Step, o.About)
}
