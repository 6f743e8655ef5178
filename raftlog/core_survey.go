package raftlog

import (
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

// Progress is the state of one replica in the view of the leader.
type Progress struct {
	ID uint64
	// Active reports whether the replica has sent a message within the last election timeout, and
	// since this leader was elected.
	Active bool
	// SilentFor is the time since the last message from the replica. If it has sent none, SilentFor
	// is the time since this leader was elected or the replica was added, whichever is later.
	SilentFor time.Duration
	// Heard reports whether this leader has received a message from the replica. Otherwise the
	// silence may be longer than SilentFor.
	Heard bool
	// CaughtUp reports whether the replica accepts appends and lacks at most 64 entries.
	CaughtUp bool
	// Match is the last entry that the replica has acknowledged. Zero means none.
	Match uint64
	// Snapshot is the size in bytes of the snapshot that the replica is to receive before further
	// entries. Zero means that it needs none.
	Snapshot int
	// Full reports whether every entry was sent to the replica, and none of them is known to be
	// lost.
	Full bool
	// Settled reports whether the replica durably has the commit index of the configuration: it has
	// acknowledged an entry that the leader proposed after it had applied the configuration.
	Settled bool
	// Differed is the entry after which the replica had another state than a majority of the voters,
	// for which it retires. Zero means that this leader has found no such state.
	Differed uint64
}

// Survey is a leader's view of its group.
type Survey struct {
	// Term is the term in which this replica leads. If it does not lead, or if Leads was not called
	// yet, Term is zero, and Pending, Last and Replicas are not set.
	Term   uint64
	Self   uint64
	Config Configuration // the last configuration that this replica applied
	// Pending reports whether a change is not applied yet, the configuration is joint, or the
	// leadership is being transferred.
	Pending  bool
	Last     uint64     // the last entry of this replica's log
	Replicas []Progress // all members of Config, including this replica, by ID
}

// caughtUpEntries is the number of entries that a caught-up replica may lack. Under load, about as
// many entries are in flight.
const caughtUpEntries = 64

// Surveyed returns a Survey and true if the Survey may have changed since the last call. Otherwise
// it returns false, and saves the allocations for a new Survey.
func (c *Core) Surveyed() (s Survey, anew bool) {
	if !c.unseen {
		return s, false
	}
	c.unseen = false
	return c.Survey(), true
}

// Survey returns the state of the group in the view of this replica. The slices are shared and must
// not be changed.
func (c *Core) Survey() Survey {
	s := Survey{Self: c.id, Config: c.members.config}
	if !c.role.Leading || !c.group.leads {
		return s
	}
	s.Term, s.Pending, s.Last = c.role.Term, c.pending(), c.last
	s.Replicas = make([]Progress, 0, len(c.members.config.Members))
	c.node.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) { // by ID
		ticks, active := c.silent(id)
		takes := pr.State == tracker.StateReplicate
		p := Progress{
			ID: id, Active: active, SilentFor: time.Duration(ticks) * c.cfg.Tick, Heard: id == c.id || c.hearings.of[id].spoke,
			CaughtUp: id == c.id || takes && pr.Match+caughtUpEntries >= c.last, Match: pr.Match,
			Full:     id == c.id || takes && pr.Next > c.last,
			Differed: c.group.naming.differed[id],
			Settled:  pr.Match > c.group.changing.mark,
		}
		if pr.State == tracker.StateSnapshot {
			p.Snapshot = len(c.view.snap.GetData())
		}
		s.Replicas = append(s.Replicas, p)
	})
	return s
}
