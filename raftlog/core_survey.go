package raftlog

import (
	"maps"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

// Progress is what a leader knows of one replica.
type Progress struct {
	// ID names it.
	ID uint64
	// Active is set while this leader has heard of it within an election timeout. What an earlier
	// lead heard does not count.
	Active bool
	// SilentFor is how long nothing was heard of it, at most since this lead began, or since it
	// came in.
	SilentFor time.Duration
	// CaughtUp is set while it takes in what is sent and lacks at most 64 entries.
	CaughtUp bool
	// Full is set while all that the leader has is acknowledged by it or on its way to it, with
	// nothing known to be lost.
	Full bool
	// Settled is set once it knows that the configuration is committed: it has acknowledged an
	// entry that was proposed after the leader had applied the configuration, and that came with
	// the commit index.
	Settled bool
}

// Survey is how a leader sees its group.
type Survey struct {
	// in which this replica leads and Leads was called, 0: in none, and then nothing below Config
	// is filled in
	Term   uint64
	Self   uint64        // this replica
	Config Configuration // as last applied here
	// a change is proposed and not applied, or the configuration is joint, or the lead is being
	// handed over
	Pending  bool
	Replicas []Progress // all of Config, this one too, by ID
}

// caughtUpEntries is how much a replica may lack and still count as caught up: what is on its way
// to it under load, about.
const caughtUpEntries = 64

// hearing is when a replica was heard of last.
type hearing struct {
	tick  uint64 // if it never was: when this lead began, or it came into the configuration
	spoke bool

	uneven uint64 // tick until which the heartbeats count as uneven, since a gap has ended
}

// hear files that a replica of the configuration has spoken, in this term or a later one: what
// arrives late says nothing of now.
func (c *Core) hear(id, term uint64) {
	if h, ok := c.heard[id]; ok && term >= c.role.Term {
		if h.spoke && c.ticks-h.tick >= c.gapTicks() {
			h.uneven = c.ticks + unsettledTicks
		}
		h.tick, h.spoke = c.ticks, true
		c.heard[id] = h
	}
}

// listen begins to listen to those of the configuration; anew says that what was heard before does
// not count.
func (c *Core) listen(anew bool) {
	if anew {
		clear(c.heard)
	}
	maps.DeleteFunc(c.heard, func(id uint64, _ hearing) bool { return !c.config.has(id) })
	for _, m := range c.config.Members {
		if _, ok := c.heard[m.ID]; !ok {
			c.heard[m.ID] = hearing{tick: c.ticks}
		}
	}
}

// silent returns for how many ticks nothing was heard of a replica, and whether it is active.
func (c *Core) silent(id uint64) (ticks uint64, active bool) {
	if id == c.id {
		return 0, true
	}
	h, ok := c.heard[id]
	ticks = c.ticks - h.tick
	return ticks, ok && h.spoke && ticks < uint64(c.cfg.ElectionTicks)
}

// Surveyed returns a Survey if it may tell something new: after a tick, a change of role or of the
// configuration, and a request for one. Not in every turn, since it costs memory.
func (c *Core) Surveyed() (s Survey, anew bool) {
	if !c.unseen {
		return s, false
	}
	c.unseen = false
	return c.Survey(), true
}

// Survey returns how this replica sees its group. The slices are shared and must not be changed.
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
