package cluster

import (
	"maps"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
)

// meta is what gossip is to say about this instance.
func (c *Cluster) meta() gossip.Meta {
	o := &c.own
	return gossip.Meta{
		Instance: o.core.Instance(), Group: o.core.Group(), At: o.book.At(), Leader: o.core.HasLeader(),
		Name: c.cfg.Name, Zone: c.cfg.Zone, Addr: c.cfg.Advertise,
	}
}

// announce lets gossip say what has changed about this instance.
func (c *Cluster) announce() {
	m := c.meta()
	if c.gossip == nil || m == c.own.told || c.own.core.Refusal() != "" {
		return
	}
	c.own.told = m
	c.gossip.Tell(m)
}

// startGossip starts to gossip. What it hears is looked at on the owner goroutine.
func (c *Cluster) startGossip() (*gossip.Gossip, error) {
	return gossip.Start(gossip.Config{
		Net: c.cfg.Net, Label: c.cfg.Label, Advertise: c.cfg.Advertise, Random: c.cfg.Random, Logger: c.cfg.Logger,
		News: func() { c.in.post(c.hearNews) },
	}, c.meta())
}

// hearNews takes the news of gossip.
func (c *Cluster) hearNews() {
	for _, n := range c.gossip.Take() {
		c.seen(n)
	}
}

// seen takes what gossip says about one member.
func (c *Cluster) seen(n gossip.News) {
	o, m := &c.own, n.Meta
	o.moved, o.listed = true, nil
	if !n.Here {
		delete(o.peers, n.Name)
		return // its address stays in the book, and worth trying
	}
	o.peers[n.Name] = m
	o.find.remember(m.Addr)
	if m.Instance == o.core.Instance() {
		o.core.Suspect(c.now(), m.Addr)
	}
}

// rivalAfter is how long another instance must go on saying that another group has a leader until it is asked: longer than gossip takes
// to find out that it is dead. A group that was founded anew meets the last words of the one before. rivalFresh is how long its answer
// counts.
const (
	rivalAfter = 45 * time.Second
	rivalFresh = 15 * time.Second
	rivalAgain = time.Second // until its answer is looked for
)

// rivalHints returns the addresses of instances that seem to belong to another group that has a
// leader, while this one's has one too: gossip says so, or they have said it themselves when they
// were asked.
func (c *Cluster) rivalHints() map[string]gossip.Meta {
	o := &c.own
	if o.core.Phase() != founding.Member || !o.core.HasLeader() {
		return nil
	}
	var hints map[string]gossip.Meta
	add := func(m gossip.Meta) {
		if hints == nil {
			hints = make(map[string]gossip.Meta)
		}
		hints[m.Addr] = m
	}
	for _, p := range o.peers {
		if p.Leader && p.Group != o.core.Group() {
			add(p)
		}
	}
	for _, addr := range o.core.Rivals(c.now()) {
		add(gossip.Meta{Addr: addr})
	}
	return hints
}

// rival returns a member of another group that has a leader, while ours has one too, and when to look again: zero if there is no hint of
// one. There is no way to merge the two. Gossip is only the hint: the instance itself has to say it when it is asked.
func (c *Cluster) rival() (who founding.Who, two bool, again time.Duration) {
	o := &c.own
	hints := c.rivalHints()
	for addr := range o.rivals {
		if _, hinted := hints[addr]; !hinted {
			delete(o.rivals, addr)
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(hints)) {
		if _, known := o.rivals[addr]; !known {
			o.rivals[addr] = c.now()
		}
		due := o.rivals[addr] + rivalAfter
		if c.now() >= due {
			met, ok := o.core.Met(c.now(), addr, rivalFresh)
			if !ok {
				o.core.Inquire(c.now(), addr)
			} else if met.Phase == founding.Member && met.Leader && met.Group != o.core.Group() && !met.Settings.Solo {
				return met, true, due
			}
			due = c.now() + rivalAgain
		}
		if again == 0 || due < again {
			again = due
		}
	}
	return founding.Who{}, false, again
}
