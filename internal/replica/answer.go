package replica

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
)

// Answer is a leader's answer to a Question. Its texts are not escaped.
type Answer struct {
	Locks []lockfsm.LockInfo
	Left  map[lockfsm.SessionID]time.Duration // time until each session ends
	// for a Check: the hold exists; for an Evict or an End: the hold or session existed and has ended
	Held bool
	Next lockfsm.Cursor
	More bool

	Sessions []lockfsm.SessionInfo
	From     lockfsm.SessionCursor // the start of the next page of Sessions and Members
	Members  []Listed
	Total    int                  // the number of all members
	Names    map[nodeid.ID]string // for Members: names of the instances that have a replica

	Data     *lockfsm.Data
	Code     lockfsm.Code // result of a Put, SetValue or Reserve
	First    uint64       // the first revision of a Reserve
	Budget   uint64       // the budget that a Put would exceed
	Leader   uint64       // raft ID of the replica that answers
	Position uint64       // position of the end of Events, or the present position
	Events   []lockfsm.Event
	// for a Lead: the name of the instance that led, and why the leadership was not moved
	LedBy   string
	Refusal voters.Refusal
	Missed  bool // some events after the question's position are no longer stored
}

// Listed is a member in a leader's answer.
type Listed struct {
	Session  lockfsm.SessionID
	Instance nodeid.ID
	Name     string
	Addr     string
	Zone     string
	Version  string
	Tier     string
	For      string
	Since    int64 // Unix milliseconds
	Votes    bool
	Leaving  bool
}

// About returns the sessions in an answer, each once.
func (a *Answer) About() []lockfsm.SessionID {
	var sessions []lockfsm.SessionID
	for _, each := range a.Sessions {
		sessions = append(sessions, each.ID)
	}
	for _, l := range a.Locks {
		for _, s := range l.Queue {
			sessions = append(sessions, s.Session)
		}
	}
	slices.Sort(sessions)
	return slices.Compact(sessions)
}

// AsMembers turns an answer with sessions into an answer with members. first must be true for the
// first page. It runs on the asker's goroutine, because decoding a hundred records takes long.
func (a *Answer) AsMembers(first bool, c *raftlog.Configuration, g *SessionIndex) {
	whole := first && !a.More
	votes := map[nodeid.ID]bool{}
	for _, v := range Placed(c) {
		votes[v.Instance] = votes[v.Instance] || !v.Learner
	}
	for _, each := range a.Sessions {
		o := DecodeRecord(each.Record)
		if each.Gone || o.Own {
			continue // the session has expired, or NewSession opened it
		}
		instance := nodeid.ID(each.Opener.Instance)
		a.Members = append(a.Members, Listed{
			Session: each.ID, Instance: instance, Name: o.Name, Addr: o.Addr, Zone: o.Zone, Version: o.Version,
			Tier: o.tier(each.Opener), For: o.For, Since: o.Since, Votes: votes[instance], Leaving: each.Leaving,
		})
	}
	a.Sessions, a.Total = nil, g.Members() // the number of members at the leader's last pass
	if whole {
		a.Total = len(a.Members)
	}
	a.Names = g.ReplicaNames()
}

// tier returns the tier of the session's opener. For a derived secret or certificate the leader has
// written the tier into the record.
func (r *Record) tier(opener lockfsm.Opener) string {
	switch {
	case opener.Capability != [32]byte{} && r.Tier == capability.Member.String():
		return r.Tier
	case opener.Capability != [32]byte{} || r.Guest:
		return capability.Guest.String()
	}
	return capability.Root.String()
}
