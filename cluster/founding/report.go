package founding

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// The methods in this file read the parts of a core, or give a fact of the owner to one of them.

// Phase returns the phase of the present incarnation.
func (c *Core) Phase() Phase { return c.bond.phase }

// Group returns the group that this incarnation is bound to or belongs to, or 0.
func (c *Core) Group() uint64 { return c.bond.group }

// At returns the number of the newest known configuration: 1 for the configuration of the charter,
// and 0 without a group.
func (c *Core) At() uint64 { return c.bond.at }

// Revision returns the number of changes of State.
func (c *Core) Revision() uint64 { return c.directory.revision }

// Refusal returns why this instance is barred, or "".
func (c *Core) Refusal() string { return c.directory.barred }

// Settling reports whether this instance is still settling. It does not take part yet.
func (c *Core) Settling() bool { return c.directory.settling }

// HasLeader reports whether this instance knows a leader of its group.
func (c *Core) HasLeader() bool { return c.leading.leader }

// Raft returns the present raft ID of this incarnation, or 0 if the incarnation has no replica.
func (c *Core) Raft() uint64 { return c.replica.raft }

// Instance returns the ID of the present incarnation.
func (c *Core) Instance() nodeid.ID { return c.self.instance }

// Life returns the number of this start.
func (c *Core) Life() uint64 { return c.self.life }

// Guide sets the leader to which this instance is attached. Zero means none.
func (c *Core) Guide(leader nodeid.ID) { c.leading.attachedTo(leader) }

// Met returns the last answer from an address, unless its question was sent more than `within`
// ago.
func (c *Core) Met(now time.Duration, addr string, within time.Duration) (InstanceInfo, bool) {
	return c.contacts.lastAnswer(now, addr, within)
}

// Places sets the addresses to which Join now resolves, and further addresses from gossip. When no
// source names an address any more, the core forgets the address and its results.
func (c *Core) Places(join []Entry, gossip []string) { c.contacts.setPlaces(join, gossip) }

// Rivals returns the addresses from which an answer of the last two minutes (rivalFor) says that
// another group has a leader. While this instance's group has no leader, no address is added.
func (c *Core) Rivals(now time.Duration) []string { return c.contacts.rivalsAt(now) }

// Floor records that this instance has received tokens up to unixMS, in Unix milliseconds. A group
// that this instance founds later has higher tokens. The floor never falls, not even in a restart
// in place, and is part of State. Each rise costs a save, so call Floor rarely.
func (c *Core) Floor(unixMS int64) { c.directory.raiseFloor(unixMS) }

// State returns what has to be stored now. It shares only the charter with the core, and the core
// never changes the charter.
func (c *Core) State() State {
	b, r, d := &c.bond, &c.replica, &c.directory
	return State{
		Instance: c.self.instance, Phase: b.phase, Group: b.group, Charter: b.charter, Settings: b.rulesOf,
		Voters: slices.Clone(b.voters), At: b.at, Supersedes: slices.Clone(b.supersedes),
		Raft: r.raft, Term: r.term, Used: slices.Clone(r.used), UsedAt: r.usedAt, Lingers: r.lingers,
		Addr: d.lastAddr, Refused: d.barred, GaveUp: slices.Clone(d.gaveUp), FloorUnixMS: d.floor,
	}
}
