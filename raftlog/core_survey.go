package raftlog

import (
	"maps"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

// Progress is the state of one replica as its leader knows it.
type Progress struct {
	ID uint64
	// Active is true if this leader has received a message from the replica within an election
	// timeout. Messages of earlier terms do not count.
	Active bool
	// SilentFor is the time since the last message of the replica, or since this leader's term
	// began or the replica was added, if that was later.
	SilentFor time.Duration
	// CaughtUp is true while the replica accepts appends and lacks at most 64 entries.
	CaughtUp bool
	// Full is set while every entry of the leader is acknowledged or in flight, with none known to
	// be lost.
	Full bool
	// Settled is true if the replica knows that the configuration is committed. It knows when it
	// has acknowledged an entry that the leader proposed after it had applied the configuration,
	// because the message with that entry also carried the commit index.
	Settled bool
}

// Survey is a leader's view of its group.
type Survey struct {
	// the term in which this replica leads and has called Leads. If it is zero, Pending and
	// Replicas are not set
	Term   uint64
	Self   uint64
	Config Configuration // as last applied here
	// a change is not applied, the configuration is joint, or the leadership is being transferred
	Pending  bool
	Replicas []Progress // all of Config, including this one, by ID
}

// caughtUpEntries is about as many entries as are in flight under load.
const caughtUpEntries = 64

// hearing records when a replica was last heard from.
type hearing struct {
	tick  uint64 // initially when this replica began to lead, or when the other was added
	spoke bool

	linked uint64 // tick of its last message that was not a duplicate; initially the same as tick
	uneven uint64 // tick until which its link counts as uneven, after a gap
}

// hear records a message of a member. A message of an earlier term is late and does not count.
func (c *Core) hear(id, term uint64, duplicate bool) {
	if h, ok := c.heard[id]; ok && term >= c.role.Term {
		if !duplicate {
			if h.spoke && c.ticks-h.linked >= c.gapTicks() {
				h.uneven = c.ticks + unsettledTicks
			}
			h.linked = c.ticks
		}
		h.tick, h.spoke = c.ticks, true
		c.heard[id] = h
	}
}

// listen adds an entry to heard for each new member, and deletes the entries of removed members. If
// anew is true it resets all entries.
func (c *Core) listen(anew bool) {
	if anew {
		clear(c.heard)
	}
	maps.DeleteFunc(c.heard, func(id uint64, _ hearing) bool { return !c.config.has(id) })
	for _, m := range c.config.Members {
		if _, ok := c.heard[m.ID]; !ok {
			c.heard[m.ID] = hearing{tick: c.ticks, linked: c.ticks}
		}
	}
}

// silent returns the ticks since a replica was last heard from, and whether it is active.
func (c *Core) silent(id uint64) (ticks uint64, active bool) {
	if id == c.id {
		return 0, true
	}
	h, ok := c.heard[id]
	ticks = c.ticks - h.tick
	return ticks, ok && h.spoke && ticks < uint64(c.cfg.ElectionTicks)
}

// Surveyed returns a Survey if it may have changed since the last call: after a tick, a change of
// role or configuration, or a request. A Survey allocates, so not every turn makes one.
func (c *Core) Surveyed() (s Survey, anew bool) {
	if !c.unseen {
		return s, false
	}
	c.unseen = false
	return c.Survey(), true
}

// Survey returns this replica's view of its group. The slices are shared and must not be changed.
func (c *Core) Survey() Survey {
	s := Survey{Self: c.id, Config: c.config}
	if !c.role.Leading || !c.group.leads {
		return s
	}
	s.Term, s.Pending = c.role.Term, c.pending()
	s.Replicas = make([]Progress, 0, len(c.config.Members))
	c.node.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) { // by ID
		ticks, active := c.silent(id)
		takes := pr.State == tracker.StateReplicate
		p := Progress{
			ID: id, Active: active, SilentFor: time.Duration(ticks) * c.cfg.Tick,
			CaughtUp: id == c.id || takes && pr.Match+caughtUpEntries >= c.last,
			Full:     id == c.id || takes && pr.Next > c.last,
			Settled:  pr.Match > c.group.changing.mark,
		}
		s.Replicas = append(s.Replicas, p)
	})
	return s
}
