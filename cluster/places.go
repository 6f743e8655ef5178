package cluster

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/discovery"
	"github.com/mortise-lock/mortise/cluster/founding"
)

func newJoin(cfg *Config) *discovery.Join {
	return discovery.New(discovery.Config{
		Entries: cfg.Join, Func: cfg.JoinFunc, Self: cfg.Advertise, Resolve: cfg.Resolve, Services: cfg.Services,
		Kubernetes: cfg.Kubernetes, Logger: cfg.Logger,
	})
}

// resolve starts the lookups that are due and returns the time of the next lookup. A member of a
// group with a leader needs Join only to find lost peers.
func (c *Cluster) resolve(now time.Duration) time.Duration {
	birth := c.own.core.Founding
	due, next := c.own.join.Due(now, birth.Phase() == founding.Member && birth.HasLeader(), c.word)
	for _, a := range due {
		c.help(func() {
			a.Run(c.ctx, func(got discovery.Result) { c.in.post(func() { c.resolved(got) }) })
		})
	}
	return next
}

func (c *Cluster) resolved(got discovery.Result) {
	appeared := c.own.join.Take(c.now(), got)
	c.own.core.Resolved(c.now(), c.own.join.Entries(), appeared)
}
