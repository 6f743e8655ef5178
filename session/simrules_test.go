package session_test

import (
	"maps"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// These checks detect errors before two callers hold one lock. They use facts that only the
// simulation knows: the real leader and all clocks.

// trueLeader returns the leader of the current term, or nil if it does not know all sessions yet.
func (s *sim) trueLeader() *simNode {
	if s.leader < 0 {
		return nil
	}
	n := s.nodes[s.leader]
	if k := n.keeper.Status(); k.Term != s.term || !k.Leading {
		return nil
	}
	return n
}

// mustBelieveNoLonger checks that a client's lease ends before its session can expire, even if no
// lock is held.
func (n *simNode) mustBelieveNoLonger() {
	s, l := n.s, n.s.trueLeader()
	status := n.client.Status(n.clock())
	until := n.global(status.Deadline)
	if l == nil || status.Session == 0 || until <= s.now {
		return
	}
	kept, lives := l.keeper.Kept(status.Session)
	switch {
	case !lives:
		s.fail("client %d has a lease until %v in session %d, which is over", n.id, until, status.Session)
	case kept.Expiring:
		s.fail("client %d has a lease until %v in session %d, which is expiring", n.id, until, status.Session)
	}
	if end := l.global(kept.Deadline); until > end {
		s.fail("client %d has a lease until %v in session %d, which may expire at %v", n.id, until, status.Session, end)
	}
}

// mustExpireNoneAlive checks that a session whose renewal has arrived is not expired. The session
// of a client that could not renew for a TTL may expire.
func (n *simNode) mustExpireNoneAlive() {
	s, k := n.s, n.keeper
	for _, x := range s.nodes { // not in random order, so that a seed is reproducible
		id := x.client.Status(x.clock()).Session
		kept, _ := k.Kept(id)
		if !kept.Expiring {
			delete(n.expiring, id)
			continue
		}
		if n.expiring[id] {
			continue
		}
		n.expiring[id] = true
		x.mustBelieveNoLonger()
		if kept.Renewing {
			s.fail("keeper %d ends session %d of %d, whose renewal has arrived", n.id, id, x.id)
		}
	}
}

// good returns for how long messages have passed freely between two nodes, in both directions.
func (s *sim) good(from, to *simNode) time.Duration {
	c := s.conn(from.id, to.id)
	if !c.up {
		return 0
	}
	return s.now - max(c.since, c.stuckTo, c.silence[0], c.silence[1], c.late, from.pausedUntil)
}

// mustStayLost checks that a lock whose deadline has passed is lost in the next turn.
func (n *simNode) mustStayLost() {
	if n.deadline == 0 || n.clock().Before(n.deadline) {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(n.s.believers)) { // sorted, so that a seed is reproducible
		for _, c := range n.s.believers[key] {
			if c.node == n && !c.ended && !c.settled {
				n.s.fail("%s: node %d keeps token %d, which it has lost at %v", key, n.id, c.token,
					n.global(n.deadline))
			}
		}
	}
}

// starving is a request that holds a lock although its client has not received the grant.
type starving struct {
	session lockfsm.SessionID
	number  lockfsm.Number
}

const starvedFor = 3 * time.Second

// audit checks twice a second that every client has received its grants.
func (s *sim) audit() {
	s.after(500*time.Millisecond, s.audit)
	l := s.trueLeader()
	if l == nil || s.now < l.readsAt || s.now < l.pausedUntil {
		clear(s.starved)
		return
	}
	still := make(map[starving]time.Duration)
	for _, n := range s.nodes {
		status := n.client.Status(n.clock())
		quiet := status.Phase == client.Attached && status.Leader.ID == l.id && (n == l || s.good(n, l) > starvedFor)
		for _, e := range l.machine.Entries() {
			if !quiet || e.Token == 0 || e.Session != status.Session || !n.client.Waits(e.Number) {
				continue
			}
			key := starving{e.Session, e.Number}
			since, seen := s.starved[key]
			if !seen {
				since = s.now
			}
			still[key] = since
			if s.now-since > starvedFor {
				s.fail("client %d has held request %d since %v and has not learned of it", n.id, e.Number, since)
			}
		}
	}
	s.starved = still
}
