package cluster

import (
	"maps"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
)

// Meta returns the data about this instance that gossip spreads.
func (c *Core) Meta() gossip.Meta {
	return gossip.Meta{
		Instance: c.Founding.Instance(), Group: c.Founding.Group(), At: c.book.At(), Leader: c.Founding.HasLeader(),
		Name: c.cfg.Founding.Name, Zone: c.cfg.Zone, Addr: c.self,
	}
}

// Seen records gossip's report about one member. The core still tries to gossip with a member that
// has left, and its address stays in the address book.
func (c *Core) Seen(now time.Duration, n gossip.News) {
	c.moved = true
	if !n.Here {
		delete(c.peers, n.Name)
		return
	}
	c.peers[n.Name] = n.Meta
	c.find.remember(n.Meta.Addr)
	if n.Meta.Instance == c.Founding.Instance() {
		c.Founding.SeenElsewhere(now, n.Meta.Addr)
	}
}

// Peers returns the members that gossip reports. The caller must not change the map.
func (c *Core) Peers() map[string]gossip.Meta { return c.peers }

// Resolved sets the addresses that Join leads to. appeared lists the new ones. A member tries a few
// new addresses without delay, because an instance may have returned at another address. The core
// keeps the entries.
func (c *Core) Resolved(now time.Duration, entries []founding.Entry, appeared []string) {
	c.join, c.moved = entries, true
	if c.Founding.Phase() != founding.Member {
		return // package founding asks all addresses, and Result calls finder.met
	}
	for _, addr := range appeared[:min(len(appeared), rejoinMany)] {
		if !c.cfg.Gossips || len(c.cfg.Founding.Settings.Founders) > 0 {
			c.Founding.Inquire(now, addr) // not every instance gossips, so ask this address first
			continue
		}
		c.find.met(addr, now)
	}
}

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

// An address is asked after it was reported as part of another group with a leader for rivalAfter.
// Gossip detects a dead instance sooner, so a group that no longer exists causes no question.
// rivalFresh is how long an answer counts.
const (
	rivalAfter = 45 * time.Second
	rivalFresh = 15 * time.Second
	rivalAgain = time.Second // time between two checks of the answer
)

// rivalHints returns the addresses that gossip or an answer reports as part of another group with a
// leader. It returns none while this instance's own group has no leader.
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

// askRival searches for a member of another group that has a leader, and returns when the next
// check is due. That member itself has to confirm the group, because gossip may be wrong.
func (c *Core) askRival(now time.Duration) (next time.Duration) {
	c.rival, next = founding.InstanceInfo{}, now+idle
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
