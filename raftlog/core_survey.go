package raftlog

import (
	"maps"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

// Progress is the state of one replica as the leader knows it.
type Progress struct {
	ID uint64
	// Active reports whether this leader has received a message from the replica within the last
	// election timeout. Messages from before this replica became the leader do not count.
	Active bool
	// SilentFor is the time since the last message from the replica. If it has sent none, SilentFor
	// is the time since this leader was elected or the replica was added, whichever is later.
	SilentFor time.Duration
	// CaughtUp reports whether the replica accepts appends and lacks at most 64 entries.
	CaughtUp bool
	// Full reports whether every entry of the leader was sent to the replica, and none of them is
	// known to be lost.
	Full bool
	// Settled reports whether the replica durably knows that the configuration is committed: it has
	// acknowledged an entry that the leader proposed after the leader had applied the
	// configuration.
	Settled bool
}

// Survey is a leader's view of its group.
type Survey struct {
	// Term is the term in which this replica leads. Before Leads was called in that term, and on a
	// replica that does not lead, Term is zero and the fields Pending and Replicas are not set.
	Term   uint64
	Self   uint64
	Config Configuration // the last configuration that this replica applied
	// Pending reports whether a change is not applied yet, the configuration is joint, or the
	// leadership is being transferred.
	Pending  bool
	Replicas []Progress // all members of Config, including this replica, by ID
}

// caughtUpEntries is the number of entries that a caught-up replica may lack. About as many are in
// flight under load.
const caughtUpEntries = 64

// hearing records the times at which messages of one replica arrived.
type hearing struct {
	tick  uint64 // tick of its last message; at first the tick at which this hearing was added
	spoke bool

	linked uint64 // tick of its last message that was no duplicate; at first the value of the field tick
	uneven uint64 // after a gap, the tick until which messages to the replica are duplicated
}

// hear records that a message of a member has arrived. A message of an earlier term is late and
// does not count.
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

// listen adds an entry to c.heard for each new member, and deletes the entries of removed members.
// If anew is set, it first deletes all entries.
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

// silent returns the number of ticks since the last message of a replica, and whether the replica
// is active.
func (c *Core) silent(id uint64) (ticks uint64, active bool) {
	if id == c.id {
		return 0, true
	}
	h, ok := c.heard[id]
	ticks = c.ticks - h.tick
	return ticks, ok && h.spoke && ticks < uint64(c.cfg.ElectionTicks)
}

// Surveyed returns a Survey and true if the Survey may have changed since the last call of
// Surveyed. The method Survey allocates, so it is not called in every turn.
func (c *Core) Surveyed() (s Survey, anew bool) {
	if !c.unseen {
		return s, false
	}
	c.unseen = false
	return c.Survey(), true
}

// Survey returns the state of the group as this replica knows it. The slices are shared and must
// not be changed.
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
