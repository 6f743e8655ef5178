package console

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/mortise-lock/mortise"
)

// pastNode is a node of a group of three, without a network.
type pastNode struct {
	*fakeNode
	status   mortise.Status
	members  []mortise.Member
	sessions []mortise.SessionInfo
}

func (n *pastNode) Status() mortise.Status { return n.status }

func (n *pastNode) Sessions(context.Context) ([]mortise.SessionInfo, error) { return n.sessions, nil }

func (n *pastNode) Members(ctx context.Context, after string) iter.Seq2[mortise.Member, error] {
	if n.fleet > 0 {
		return n.fakeNode.Members(ctx, after)
	}
	return func(yield func(mortise.Member, error) bool) {
		for _, m := range n.members {
			if !yield(m, nil) {
				return
			}
		}
	}
}

func newPastNode(keys ...mortise.KeyInfo) *pastNode {
	n := &pastNode{fakeNode: &fakeNode{keys: keys}}
	n.status = n.fakeNode.Status()
	n.status.Name, n.status.Instance, n.status.Address, n.status.Leader = "orders-0", "id-0", "10.0.0.10:7947", "orders-1"
	n.status.Cluster, n.status.Version, n.status.Age = "orders", "v0.1.0", 26*time.Hour
	n.status.LeaseFor, n.status.Joined, n.status.Health.Members = 8*time.Second, true, 3
	for i := range 3 {
		m := mortise.Member{Name: fmt.Sprintf("orders-%d", i), Instance: fmt.Sprintf("id-%d", i), Votes: true, Seen: true,
			Address: fmt.Sprintf("10.0.0.1%d:7947", i)}
		n.status.Voters = append(n.status.Voters, m)
		m.Session, m.Version, m.Tier = fmt.Sprint(i+1), "v0.1.0", mortise.TierRoot
		n.members = append(n.members, m)
		n.sessions = append(n.sessions, mortise.SessionInfo{TTL: 10 * time.Second,
			Left:   time.Duration(9-i) * time.Second,
			Member: mortise.Member{Session: m.Session, Name: m.Name, Instance: m.Instance}})
	}
	return n
}

// anHour returns a history of the last hour with a rising load, one bad minute and two losses.
func anHour() *History {
	h := NewHistory()
	now := time.Now()
	h.hour = hour{}
	h.hour.begin(now.Add(-time.Hour - time.Minute))
	for at := h.hour.began; at.Before(now); at = at.Add(3 * time.Second) {
		minute := at.Sub(h.hour.began).Minutes()
		bad := minute > 40 && minute < 43
		for i := range int(30 + 20*math.Sin(minute/9)) {
			e := mortise.LockEvent{Outcome: mortise.OutcomeGranted, Took: time.Duration(200+i*17) * time.Microsecond}
			if i%7 == 0 {
				e.Behind, e.Took = &mortise.HeldError{}, time.Duration(2+i%5)*time.Millisecond
			}
			if bad {
				e.Took *= 40
			}
			h.acquired(at, &e)
			h.unlocked(at, &mortise.LockEvent{Outcome: mortise.OutcomeConfirmed, Held: 3 * e.Took})
		}
		if bad && int(at.Sub(h.hour.began).Seconds())%60 == 0 {
			h.lost(at, &mortise.LockEvent{Outcome: mortise.OutcomeLease, Held: 9 * time.Second})
		}
		left := 8 * time.Second
		if bad {
			left = 4 * time.Second
		}
		h.leased(at, left)
	}
	h.leased(now, 8*time.Second)
	return h
}
