package cluster

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/discovery"
	"github.com/mortise-lock/mortise/cluster/founding"
)

// This file carries out what package discovery decides: lookups on helpers, and what they find to
// the core and to gossip.

// newJoin returns what Join leads to, for a Config.
func newJoin(cfg *Config) *discovery.Join {
	return discovery.New(discovery.Config{
		Entries: cfg.Join, Func: cfg.JoinFunc, Self: cfg.Advertise, Resolve: cfg.Resolve, Services: cfg.Services, Logger: cfg.Logger,
	})
}

// resolve starts the lookups that are due and returns when the next one is.
func (c *Cluster) resolve(now time.Duration) time.Duration {
	due, next := c.own.join.Due(now, c.hasLeader(), c.word)
	for _, a := range due {
		c.help(func() {
			a.Run(c.ctx, func(got discovery.Result) { c.in.post(func() { c.resolved(got) }) })
		})
	}
	return next
}

// hasLeader reports whether this instance is a member of a group with a leader: then Join is needed
// only to find lost peers.
func (c *Cluster) hasLeader() bool {
	return c.own.core.Phase() == founding.Member && c.own.core.HasLeader()
}

// resolved takes what a lookup has found. It lets a member gossip at once with instances that have
// got an address behind Join, a few at a time: one that comes back at another address need not wait
// for its turn among the lost.
func (c *Cluster) resolved(got discovery.Result) {
	c.own.moved = true
	appeared := c.own.join.Take(c.now(), got)
	if c.own.core.Phase() != founding.Member {
		return // all addresses are asked already, and whatever answers is met
	}
	for _, addr := range appeared[:min(len(appeared), rejoinMany)] {
		if c.gossip == nil || len(c.cfg.Settings.Founders) > 0 {
			c.own.core.Inquire(c.now(), addr) // only a founder gossips
			continue
		}
		c.own.find.met(addr, c.now())
	}
}

// places tells the core which addresses it may ask, if that has changed.
func (c *Cluster) places() {
	o := &c.own
	if !o.moved {
		return
	}
	o.moved = false
	seen := make([]string, 0, len(o.peers))
	for _, name := range sortedNames(o.peers) {
		seen = append(seen, o.peers[name].Addr)
	}
	o.core.Places(o.join.Entries(), seen)
}
