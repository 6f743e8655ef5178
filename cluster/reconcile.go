package cluster

import (
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/cluster/voters"
)

// Look records that the result of OwnState.Facts may have changed, for example a role, a session, a
// link or the progress of a replica. Look is cheap.
func (c *Cluster) Look() {
	if c.looking.Swap(true) {
		return
	}
	c.in.post(func() {
		c.looking.Store(false) // cleared before the facts are read, so that a later change is posted
		c.own.core.Look()
	})
}

// Report returns the state of the voters at the last evaluation, if this instance leads. The caller
// must not change its slices.
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
