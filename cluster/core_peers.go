package cluster

import (
	"maps"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
)

// This file is what the core makes of gossip and of Join. Both name places to ask, and nothing
// more.

// Meta is what gossip is to say about this instance.
func (c *Core) Meta() gossip.Meta {
	return gossip.Meta{
		Instance: c.Founding.Instance(), Group: c.Founding.Group(), At: c.book.At(), Leader: c.Founding.HasLeader(),
		Name: c.cfg.Founding.Name, Zone: c.cfg.Zone, Addr: c.self,
	}
}

// Seen takes what gossip says about one member. The address of one that has left stays in the
// book, and worth trying.
func (c *Core) Seen(now time.Duration, n gossip.News) {
	c.moved = true
	if !n.Here {
		delete(c.peers, n.Name)
		return
	}
	c.peers[n.Name] = n.Meta
	c.find.remember(n.Meta.Addr)
	if n.Meta.Instance == c.Founding.Instance() {
		c.Founding.Suspect(now, n.Meta.Addr)
	}
}

// Peers returns what gossip sees. The map is the core's and must not be changed.
func (c *Core) Peers() map[string]gossip.Meta { return c.peers }

// Resolved takes what Join leads to now, and the addresses that have just appeared behind it. A
// member turns to these at once, a few at a time: an instance that comes back at another address
// need not wait for its turn among the lost. The core keeps the entries.
func (c *Core) Resolved(now time.Duration, entries []founding.Entry, appeared []string) {
	c.join, c.moved = entries, true
	if c.Founding.Phase() != founding.Member {
		return // all addresses are asked already, and whatever answers is met
	}
	for _, addr := range appeared[:min(len(appeared), rejoinMany)] {
		if !c.cfg.Gossips || len(c.cfg.Founding.Settings.Founders) > 0 {
			c.Founding.Inquire(now, addr) // only a founder gossips
			continue
		}
		c.find.met(addr, now)
	}
}

// places tells founding which addresses it may ask, if that has changed.
func (c *Core) places() {
	if !c.moved {
		return
	}
	c.moved = false
	seen := make([]string, 0, len(c.peers))
	for _, name := range slices.Sorted(maps.Keys(c.peers)) {
		seen = append(seen, c.peers[name].Addr)
	}
	c.Founding.Places(c.join, seen)
}

// rivalAfter is how long another instance must go on saying that another group has a leader until
// it is asked: longer than gossip takes to find out that it is dead. A group that was founded anew
// meets the last words of the one before. rivalFresh is how long its answer counts.
const (
	rivalAfter = 45 * time.Second
	rivalFresh = 15 * time.Second
	rivalAgain = time.Second // until its answer is looked for
)

// rivalHints returns the addresses of instances that seem to belong to another group that has a
// leader, while this one's has one too: gossip says so, or they have said it themselves when they
// were asked.
func (c *Core) rivalHints(now time.Duration) map[string]bool {
	if c.Founding.Phase() != founding.Member || !c.Founding.HasLeader() {
		return nil
	}
	hints := make(map[string]bool)
	for _, p := range c.peers {
		if p.Leader && p.Group != c.Founding.Group() {
			hints[p.Addr] = true
		}
	}
	for _, addr := range c.Founding.Rivals(now) {
		hints[addr] = true
	}
	return hints
}

// seekRival looks for a member of another group that has a leader, while this one's has one too,
// and returns when to look again. Gossip is only the hint: the instance itself has to say it when
// it is asked.
func (c *Core) seekRival(now time.Duration) (next time.Duration) {
	c.rival, next = founding.Who{}, now+idle
	hints := c.rivalHints(now)
	for addr := range c.rivals {
		if !hints[addr] {
			delete(c.rivals, addr)
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(hints)) {
		if _, known := c.rivals[addr]; !known {
			c.rivals[addr] = now
		}
		due := c.rivals[addr] + rivalAfter
		if now >= due {
			met, ok := c.Founding.Met(now, addr, rivalFresh)
			if !ok {
				c.Founding.Inquire(now, addr)
			} else if met.Phase == founding.Member && met.Leader && met.Group != c.Founding.Group() &&
				!met.Settings.Solo {
				c.rival = met
				return now + rivalAgain
			}
			due = now + rivalAgain
		}
		next = min(next, due)
	}
	return next
}
