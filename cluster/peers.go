package cluster

import (
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
)

func (c *Cluster) push() {
	m := c.own.core.Meta()
	if c.gossip == nil || m == c.own.told || c.own.core.Founding.Refusal() != "" {
		return
	}
	c.own.told = m
	c.gossip.Tell(m)
}

func (c *Cluster) startGossip() (gossip.Gossip, error) {
	return c.cfg.Gossip(gossip.Config{
		Net: c.cfg.Net, Label: c.cfg.Label, Advertise: c.cfg.Advertise, Random: c.cfg.Random, Logger: c.cfg.Logger,
		News: func() { c.in.post(c.hearNews) },
	}, c.own.core.Meta())
}

func (c *Cluster) hearNews() {
	for _, n := range c.gossip.Take() {
		c.seen(n)
	}
}

func (c *Cluster) seen(n gossip.News) {
	c.own.listed = nil
	c.own.core.Seen(c.now(), n)
}

func (c *Cluster) rejoin(addr string) {
	if c.left.Load() {
		return
	}
	c.help(func() {
		err := c.gossip.Join(addr)
		c.in.post(func() {
			c.own.core.Gossiped(addr)
			if err != nil && c.own.core.Founding.Phase() == founding.Member {
				c.cfg.Logger.Debug("gossip with an absent peer failed", "addr", addr, "err", err)
			}
		})
	})
}
