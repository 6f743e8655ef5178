package cluster

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

const (
	pullWithin       = 2 * time.Second // how long to wait for an answer of the leader
	pullSoon         = pullWithin / 8  // how long to wait for an answer of another voter
	pushTries        = 4
	pushPause        = time.Second
	removedPeerPause = time.Second // pause between two pushes to one removed peer
	maxRemovedPeers  = 64
	idle             = time.Hour // time until the next turn if no work is due
)

// charterAt is the number of a group's first configuration, which its charter defines.
const charterAt = 1

type spreading struct {
	pushes   []*pushing // waiting to be sent
	attached []Voter    // instances that still need the configuration, each once
	telling  int
	before   []Voter       // replicas of replaced configurations, kept until the next evaluation
	pullAt   time.Duration // time of the next question for a newer configuration
	pulls    int
}

// pushing sends the newest configuration to one instance. The push is repeated while the instance
// is silent and tries are left.
type pushing struct {
	to    nodeid.ID
	addr  string
	tries int
	due   time.Duration // zero means now
}

// Configured processes a configuration that this instance has applied or received. at is the log
// index of its entry. An older configuration does not change the address book. A configuration with
// the same index, or with at == 0, may contain newer addresses.
func (c *Core) Configured(now time.Duration, group, at uint64, voters []Voter) {
	if group == 0 || group != c.Founding.Group() {
		return
	}
	known := c.book.At()
	switch {
	case at < known && at != 0:
		c.Founding.Voters(now, group, at, voters) // an older configuration may show that this replica was removed
	case at <= known:
		changed := false
		for _, v := range voters {
			changed = c.book.Hear(v, false) || changed
		}
		if changed {
			c.readdressed(now)
		}
	default:
		c.remember(c.book.Voters())
		c.configure(now, group, at, voters)
		c.spread.pullAt = 0 // gossip may report an even newer configuration
		c.tellHost()
		c.wanted = true
	}
}

func (c *Core) configure(now time.Duration, group, at uint64, voters []Voter) {
	c.book.Configure(at, voters)
	if c.raft != 0 { // this instance's own address is the newest
		c.book.Hear(Voter{Raft: c.raft, Instance: c.Founding.Instance(), Addr: c.self, Life: c.Founding.Life()}, true)
	}
	c.Founding.Voters(now, group, c.book.At(), c.book.Voters())
}

// readdressed reports the new addresses of voters to founding and the host. A leader also sends
// them to the other voters.
func (c *Core) readdressed(now time.Duration) {
	c.Founding.Voters(now, c.Founding.Group(), c.book.At(), c.book.Voters())
	c.tellHost()
	if !c.lead.Leads() {
		return
	}
	for _, v := range c.book.Voters() {
		if v.Instance != c.Founding.Instance() {
			c.push(v.Instance, v.Addr, 1)
		}
	}
}

// tellHost reports the whole address book to the host. Before the instance is settled, the events
// BoundTo and Joined report the voters.
func (c *Core) tellHost() {
	if c.settled() {
		c.events = append(c.events, founding.Event{
			Kind: founding.Heard, Group: c.Founding.Group(), At: c.book.At(), Voters: c.book.Voters(),
		})
	}
}

// remember keeps the replicas of a replaced configuration until an evaluation shows whether this
// instance leads.
func (c *Core) remember(before []Voter) {
	for _, v := range before {
		if !slices.ContainsFunc(c.spread.before, func(o Voter) bool { return o.Raft == v.Raft }) {
			c.spread.before = append(c.spread.before, v)
		}
	}
}

// If this instance leads, the method announce sends a new configuration to the attached instances,
// and to the replicas that are no longer part of it (rule 14 of package founding). Without this,
// several changes within a second could replace all voters whose addresses an instance has.
func (c *Core) announce() {
	before := c.spread.before
	if before == nil || !c.lead.Leads() && c.wanted {
		return // the evaluation is still due
	}
	c.spread.before = nil
	if !c.lead.Leads() {
		return
	}
	for _, v := range before {
		if _, stays := c.book.Find(v.Raft); !stays && v.Instance != c.Founding.Instance() {
			c.push(v.Instance, v.Addr, pushTries)
		}
	}
	c.spread.attached = c.lead.Attached(slices.Concat(before, c.book.Voters()))
}

// RemovedPeer sends the configuration to an instance that sends raft messages although no
// configuration contains its raft ID. The caller limits the calls with RemovedPeers.
func (c *Core) RemovedPeer(instance nodeid.ID, addr string) { c.push(instance, addr, 1) }

func (c *Core) push(to nodeid.ID, addr string, tries int) {
	if addr != "" {
		c.spread.pushes = append(c.spread.pushes, &pushing{to: to, addr: addr, tries: tries})
	}
}

func (c *Core) tell(now time.Duration) time.Duration {
	c.announce()
	s, next := &c.spread, now+idle
	if !c.settled() || c.book.At() == 0 || c.cfg.Founding.Settings.Solo {
		s.pushes, s.attached = nil, nil
		return next
	}
	var later []*pushing
	for _, a := range s.pushes {
		if a.due > now {
			later, next = append(later, a), min(next, a.due)
			continue
		}
		a.tries--
		c.acts.Tasks = append(c.acts.Tasks, Task{
			To: a.to, Addr: a.addr, Body: c.pushTo(a.to), pushed: a,
		})
	}
	s.pushes = later
	for s.telling < maxAsks && len(s.attached) > 0 {
		v := s.attached[0]
		s.attached = s.attached[1:]
		s.telling++
		c.acts.Tasks = append(c.acts.Tasks, Task{
			To: v.Instance, Addr: v.Addr, Body: c.pushTo(v.Instance), attached: true,
		})
	}
	return next
}

func (c *Core) pushTo(instance nodeid.ID) []byte {
	return founding.AppendPush(nil, founding.Push{
		To: instance, Group: c.Founding.Group(), At: c.book.At(), Voters: c.book.Voters(),
	})
}

func (c *Core) pushed(now time.Duration, a *pushing, outcome founding.Outcome) {
	if outcome == founding.Silent && a.tries > 0 {
		a.due = now + pushPause
		c.spread.pushes = append(c.spread.pushes, a)
	}
}

// If gossip reports a newer configuration of this group, pull requests it from the leader or a
// known voter. The report may be false, so pull does not ask the reporting instance.
func (c *Core) pull(now time.Duration, word uint64) {
	s := &c.spread
	if now < s.pullAt || !c.behind() {
		return
	}
	leader, addr := c.nextToAsk(s.pulls, word)
	s.pullAt = now + pullWithin
	if leader != c.cfg.OwnState.Guide() {
		s.pullAt = now + pullSoon // the voter may not have the newer configuration
	}
	s.pulls++
	c.Founding.Inquire(now, addr)
}

func (c *Core) pullDue(now time.Duration) time.Duration {
	if !c.behind() {
		return now + idle
	}
	return max(c.spread.pullAt, now)
}

// behind reports whether gossip reports a newer configuration of this group. It returns false if
// this instance is not a member, because then it asks all addresses anyway.
func (c *Core) behind() bool {
	if !c.settled() {
		return false
	}
	for _, m := range c.peers {
		if m.Group == c.Founding.Group() && m.At > c.book.At() && m.Addr != c.self {
			return true
		}
	}
	return false
}

// RemovedPeers contains the removed instances that were recently sent the configuration. The zero
// value is empty. A RemovedPeers is not safe for concurrent use.
type RemovedPeers struct{ told map[nodeid.ID]time.Duration }

// Due reports whether the configuration must be sent to a removed peer now, and records a positive
// answer. It returns true at most once a second for each peer, and at most maxRemovedPeers times a
// second in total.
func (s *RemovedPeers) Due(instance nodeid.ID, now time.Duration) bool {
	if last, known := s.told[instance]; known && now-last < removedPeerPause {
		return false
	}
	if s.told == nil {
		s.told = make(map[nodeid.ID]time.Duration)
	}
	for id, last := range s.told {
		if now-last >= removedPeerPause {
			delete(s.told, id)
		}
	}
	if len(s.told) >= maxRemovedPeers {
		return false
	}
	s.told[instance] = now
	return true
}
