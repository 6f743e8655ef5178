package queries

import (
	"slices"
	"strings"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

func cursor(c *query.Cursor) lockfsm.Cursor {
	return lockfsm.Cursor{Key: string(c.GetKey()), Place: c.GetPlace()}
}

func sessionCursor(c *query.SessionCursor) lockfsm.SessionCursor {
	return lockfsm.SessionCursor{At: lockfsm.SessionID(c.GetAt()), Past: lockfsm.SessionID(c.GetPast())}
}

func fromOf(c lockfsm.SessionCursor) *query.SessionCursor {
	return &query.SessionCursor{At: uint64(c.At), Past: uint64(c.Past)}
}

func dataOf(d *lockfsm.Data) *query.Data {
	if d == nil {
		return &query.Data{}
	}
	return &query.Data{Value: d.Value, Revision: uint64(d.Revision)}
}

// lockList encodes the locks. It omits the keys that the asking program has no right to read.
func lockList(a *replica.Answer, rights *capability.Capability) *query.LockList {
	list := &query.LockList{
		Next: &query.Cursor{Key: []byte(a.Next.Key), Place: a.Next.Place}, More: a.More, Leader: a.Leader,
		Position: a.Position,
	}
	for _, l := range a.Locks {
		one := &query.Lock{Key: []byte(l.Key), Held: uint32(l.Held), Waiting: uint32(l.Waiting), Data: dataOf(&l.Data)}
		for _, s := range l.Queue {
			part, also := partsOf(l.Key, &s, rights)
			one.Queue = append(one.Queue, &query.Standing{
				Session: uint64(s.Session), Record: s.Record, Place: uint64(s.Place), Token: uint64(s.Token),
				Watch: uint64(s.Watch),
				Since: s.SinceUnixMS, Part: part, Also: also, Upgrades: s.Upgrades, Value: s.Value,
				Gone: s.Gone, Kept: s.Last != 0,
				Left: int64(a.Left[s.Session]), Unsearched: s.Unsearched,
			})
		}
		list.Locks = append(list.Locks, one)
	}
	return list
}

// partsOf returns the part for which a request is in the queue of key, and its other parts. The
// first is the part with that key, or the first tree whose node is below.
func partsOf(key string, s *lockfsm.Standing, rights *capability.Capability) (part *query.Part, also []*query.Part) {
	parts := s.Parts()
	here := slices.IndexFunc(parts, func(p lockfsm.Part) bool { return p.Key == key })
	if here < 0 {
		here = slices.IndexFunc(parts, func(p lockfsm.Part) bool { return p.Tree && strings.HasPrefix(p.Key, key+"/") })
	}
	for i := range parts {
		if p := partOf(&parts[i], rights); i == here {
			part = p
		} else {
			also = append(also, p)
		}
	}
	return part, also
}

// partOf encodes a part. Without the right to read its key it has none.
func partOf(p *lockfsm.Part, rights *capability.Capability) *query.Part {
	q := &query.Part{Mode: uint32(p.Mode), Permits: p.Permits, Of: p.Of, Tree: p.Tree}
	if rights.Sees(p.Key) {
		q.Key = []byte(p.Key)
	}
	return q
}

func eventList(a *replica.Answer) *query.EventList {
	list := &query.EventList{Position: a.Position, More: a.More, Missed: a.Missed, Leader: a.Leader}
	for _, e := range a.Events {
		one := &query.Event{
			Position: e.Position, What: uint32(e.What), Cause: uint32(e.Cause), Part: partOf(&e.Part, nil),
			Token:   uint64(e.Token),
			Session: uint64(e.Session), Record: e.Record, At: e.WallUnixMS,
		}
		if how := e.How; how != nil {
			one.By, one.Reason, one.Data, one.Value = how.By, how.Reason, dataOf(&how.Data), how.Value
		}
		list.Events = append(list.Events, one)
	}
	return list
}

// sessionList encodes the sessions without their nonces, which are secret.
func sessionList(a *replica.Answer) *query.SessionList {
	list := &query.SessionList{From: fromOf(a.From), More: a.More}
	for _, s := range a.Sessions {
		list.Sessions = append(list.Sessions, &query.Session{
			Id: uint64(s.ID), Record: s.Record, Ttl: int64(s.TTL), Left: int64(a.Left[s.ID]), Leaving: s.Leaving,
			Gone: s.Gone,
			Held: uint32(s.Held), Waiting: uint32(s.Waiting),
		})
	}
	return list
}

func memberList(a *replica.Answer) *query.MemberList {
	list := &query.MemberList{From: fromOf(a.From), More: a.More, Total: uint32(a.Total)}
	for _, m := range a.Members {
		list.Members = append(list.Members, &query.Member{
			Session: uint64(m.Session), Instance: m.Instance[:], Name: m.Name, Addr: m.Addr, Zone: m.Zone,
			Version: m.Version,
			Tier:    m.Tier, For: m.For, Since: m.Since, Votes: m.Votes, Leaving: m.Leaving,
		})
	}
	for id, name := range a.Names {
		list.Names = append(list.Names, &query.Name{Instance: id[:], Name: name})
	}
	return list
}
