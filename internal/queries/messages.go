package queries

import (
	"fmt"

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
			one.Queue = append(one.Queue, &query.Standing{
				Session: uint64(s.Session), Record: s.Record, Place: uint64(s.Place), Token: uint64(s.Token),
				Watch: uint64(s.Watch),
				Since: s.SinceUnixMS, Permits: s.Permits, Of: s.Of, Keys: keysOf(s.Keys, rights), Value: s.Value,
				Gone: s.Gone, Kept: s.Last != 0, Modes: modesOf(s.Modes),
				Left: int64(a.Left[s.Session]), Unsearched: s.Unsearched,
			})
		}
		list.Locks = append(list.Locks, one)
	}
	return list
}

func modesOf(modes []lockfsm.Mode) (b []byte) {
	for _, mode := range modes {
		b = append(b, byte(mode))
	}
	return b
}

// keysOf returns the keys that the holder of the rights may see. If keys are omitted, the last
// element contains their number.
func keysOf(keys []string, rights *capability.Capability) (shown [][]byte) {
	for _, key := range keys {
		if rights.Sees(key) {
			shown = append(shown, []byte(key))
		}
	}
	if hidden := len(keys) - len(shown); hidden > 0 {
		shown = append(shown, fmt.Appendf(nil, "%d more outside these rights", hidden))
	}
	return shown
}

func eventList(a *replica.Answer) *query.EventList {
	list := &query.EventList{Position: a.Position, More: a.More, Missed: a.Missed, Leader: a.Leader}
	for _, e := range a.Events {
		one := &query.Event{
			Position: e.Position, What: uint32(e.What), Cause: uint32(e.Cause), Key: []byte(e.Key),
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
