package cluster

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file spreads configurations: it decides which configuration counts, and which instances are
// sent it.

const (
	pullWithin       = 2 * time.Second // how long to wait for the answer of one peer that knows a newer configuration
	pullSoon         = pullWithin / 8  // the same for a voter that does not lead
	pushTries        = 4
	pushPause        = time.Second
	removedPeerPause = time.Second // between two pushes to one removed peer
	maxRemovedPeers  = 64          // removed peers that are remembered
	idle             = time.Hour   // no work is due
)

// charterAt is the number of the configuration that a charter makes.
const charterAt = 1

type spreading struct {
	pushes   []*pushing    // to be made
	attached []Voter       // attached instances that must be sent the configuration once, a few at a time
	telling  int           // pushes to attached instances that are under way
	before   []Voter       // the replicas before the last changes; kept until it is known which instance leads
	pullAt   time.Duration // no instance is asked for a newer configuration before this time
	pulls    int
}

// pushing sends the newest configuration to one instance until it has answered, nothing listens at
// its address, or no tries are left.
type pushing struct {
	to    nodeid.ID
	addr  string
	tries int           // left
	due   time.Duration // zero means at once
}

// Configured processes a configuration that was applied here or told by a voter or the leader. at
// is the log index of the entry that made it. A configuration that is older than the known one
// changes nothing. One with the same number, or with at == 0, may contain newer addresses.
func (c *Core) Configured(now time.Duration, group, at uint64, voters []Voter) {
	if group == 0 || group != c.Founding.Group() {
		return
	}
	known := c.book.At()
	switch {
	case at < known && at != 0:
		c.Founding.Voters(now, group, at, voters) // it may show that this instance's replica was removed since
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
		c.spread.pullAt = 0 // an instance that knows a still newer configuration is asked at once
		c.tellHost()
		c.wanted = true
	}
}

func (c *Core) configure(now time.Duration, group, at uint64, voters []Voter) {
	c.book.Configure(at, voters)
	if c.raft != 0 { // it knows its own address best
		c.book.Hear(Voter{Raft: c.raft, Instance: c.Founding.Instance(), Addr: c.self, Life: c.Founding.Life()}, true)
	}
	c.Founding.Voters(now, group, c.book.At(), c.book.Voters())
}

// readdressed passes on new addresses of voters. The leader sends them to the other voters, which
// believe it.
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

// tellHost emits the whole address book. Before the host knows the group, BoundTo and Joined carry
// it.
func (c *Core) tellHost() {
	if c.settled() {
		c.events = append(c.events, founding.Event{
			Kind: founding.Heard, Group: c.Founding.Group(), At: c.book.At(), Voters: c.book.Voters(),
		})
	}
}

// remember keeps the replicas of a replaced configuration until it is known whether this instance
// leads.
func (c *Core) remember(before []Voter) {
	for _, v := range before {
		if !slices.ContainsFunc(c.spread.before, func(o Voter) bool { return o.Raft == v.Raft }) {
			c.spread.before = append(c.spread.before, v)
		}
	}
}

// succeed makes a leader announce a new configuration to the replicas that it leaves out (rule 14
// of package founding) and to the attached instances. Several changes within a second may replace
// all voters. An instance that knows none of the new voters would have to restart in place when the
// leader ends. The replicas that remain learn the new configuration from the log.
func (c *Core) succeed() {
	before := c.spread.before
	if before == nil || !c.lead.Leads() && c.wanted {
		return // it is not known yet whether this instance leads
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
	c.spread.attached = c.lead.Attached(slices.Concat(before, c.book.Voters())) // replaces those of the last change
}

// RemovedPeer records that an instance whose raft ID is in no configuration sends raft messages
// here: it was removed and has not learned of it. RemovedPeers decides when to tell it.
func (c *Core) RemovedPeer(instance nodeid.ID, addr string) { c.push(instance, addr, 1) }

func (c *Core) push(to nodeid.ID, addr string, tries int) {
	if addr != "" {
		c.spread.pushes = append(c.spread.pushes, &pushing{to: to, addr: addr, tries: tries})
	}
}

// tell starts the pushes that are due, and returns when the next one is due.
func (c *Core) tell(now time.Duration) time.Duration {
	c.succeed()
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

// pull asks the leader or a known voter if gossip reports a newer configuration of this group. It
// does not ask the reporting instance, whose answer would not be believed.
func (c *Core) pull(now time.Duration, word uint64) {
	s := &c.spread
	if now < s.pullAt || !c.behind() {
		return
	}
	leader, addr := c.nextToAsk(s.pulls, word)
	s.pullAt = now + pullWithin
	if leader != c.cfg.OwnState.Guide() {
		s.pullAt = now + pullSoon // a voter may know no more
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

// behind reports whether gossip says that another member of the group knows a newer configuration.
// An instance that is not a member yet asks all other instances anyway.
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

// RemovedPeers records which instances were recently told that they are in no configuration. The
// zero RemovedPeers is empty. It is not safe for concurrent use.
type RemovedPeers struct{ told map[nodeid.ID]time.Duration }

// Due reports whether a removed peer is to be told now, and records it. Each is due at most once a
// second, and at most maxRemovedPeers in a second.
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
