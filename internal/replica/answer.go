package replica

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
)

// Answer is what a leader says to a Question. Its texts are raw.
type Answer struct {
	Locks []lockfsm.LockInfo
	Left  map[lockfsm.SessionID]time.Duration // until a session ends
	Held  bool                                // of a Check; of an Evict, that it was and is not any more
	Next  lockfsm.Cursor
	More  bool

	Sessions []lockfsm.SessionInfo
	From     lockfsm.SessionCursor // of Sessions and Members: where the next page begins
	Members  []Listed
	Total    int                  // of Members: how many there are
	Names    map[nodeid.ID]string // of Members: of the instances that have a replica

	Data     *lockfsm.Data
	Code     lockfsm.Code // of a Put
	Budget   uint64       // that had no room for it
	Leader   uint64       // raft ID of who answers
	Position uint64       // up to which Events tell, or the present one
	Events   []lockfsm.Event
	Missed   bool // what came behind the position of the question is not known any more
}

// Listed is a member in the leader's answer.
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

// About lists the sessions that an answer names, each once.
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

// AsMembers makes an answer of members out of one of sessions. It runs on the goroutine of the
// asker: to decode a hundred records takes longer than to find them. first is set for the first
// page.
func (a *Answer) AsMembers(first bool, c *raftlog.Configuration, g *Registry) {
	whole := first && !a.More
	votes := map[nodeid.ID]bool{}
	for _, v := range Placed(c) {
		votes[v.Instance] = votes[v.Instance] || !v.Learner
	}
	for _, each := range a.Sessions {
		o := DecodeRecord(each.Record)
		if each.Gone || o.Own {
			continue // it is no member any more, or one is listed by its first session
		}
		instance := nodeid.ID(each.Opener.Instance)
		a.Members = append(a.Members, Listed{
			Session: each.ID, Instance: instance, Name: o.Name, Addr: o.Addr, Zone: o.Zone, Version: o.Version,
			Tier: o.tier(each.Opener), For: o.For, Since: o.Since, Votes: votes[instance], Leaving: each.Leaving,
		})
	}
	a.Sessions, a.Total = nil, g.Members() // as of the leader's last look
	if whole {
		a.Total = len(a.Members)
	}
	a.Names = g.ReplicaNames()
}

// tier is what a session's opener is: of a derived secret or certificate the leader has written it
// into the record.
func (r *Record) tier(opener lockfsm.Opener) string {
	switch {
	case opener.Capability != [32]byte{} && r.Tier == capability.Member.String():
		return r.Tier
	case opener.Capability != [32]byte{} || r.Guest:
		return capability.Guest.String()
	}
	return capability.Root.String()
}
