package cluster

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/birth"
)

// member is somebody whom gossip sees.
type member struct{ meta meta }

// meta is what gossip is to say about this instance.
func (c *Cluster) meta() meta {
	o := &c.own
	return meta{
		Instance: o.core.Instance(), Group: o.core.Group(), Raft: o.raft, Life: o.core.Life(), At: o.book.At(), Leader: o.core.HasLeader(),
		Name: c.cfg.Name, Zone: c.cfg.Zone, Addr: c.cfg.Advertise,
	}
}

// announce lets gossip say what has changed about this instance.
func (c *Cluster) announce() {
	m := c.meta()
	if c.gossip == nil || m == c.own.told || c.own.core.Refusal() != "" {
		return
	}
	c.own.told = m
	c.gossip.tell(m)
}

// seen is news on the owner goroutine.
func (c *Cluster) seen(name string, m meta, here bool) {
	o := &c.own
	o.moved, o.listed = true, nil
	if !here {
		delete(o.peers, name)
		delete(o.rivals, name)
		return // his address stays in the book, and worth trying
	}
	c.retired(o.peers[name].meta, m)
	o.peers[name] = member{meta: m}
	o.find.remember(m.Addr)
	if m.Instance == o.core.Instance() {
		o.core.Suspect(c.now(), m.Addr)
	}
	if m.Group == 0 || m.Addr == c.cfg.Advertise {
		return // nobody's voter, or this instance itself
	}
	if m.Group == o.core.Group() {
		c.readdressed(m.Raft != 0 && o.book.Hear(m.voter(), true))
	}
}

// retired lets the leader know that an instance says of itself that the replica that it had is over. before and m are what the same process has
// said, one after the other. With a directory the next process may go on with it.
func (c *Cluster) retired(before, m meta) {
	s := &c.own.steer
	if s.leads && !s.facts.Settings.Durable && before.Raft != 0 && before.Raft != m.Raft && before.Group == c.own.core.Group() {
		s.core.Retired(before.Raft)
		c.looking.Store(true)
	}
}

// rivalAfter is how long somebody must go on saying that another group has a leader until it is believed: longer than gossip takes to
// find out that he is dead. A group that was founded anew meets the last words of the one before.
const rivalAfter = 45 * time.Second

// rival returns a member of another group that has a leader, while ours has one too, and when to look again: zero if nobody says so.
// There is no way to merge the two.
func (c *Cluster) rival() (who meta, two bool, again time.Duration) {
	o := &c.own
	alone := o.core.Phase() != birth.Member || !o.core.HasLeader()
	for _, name := range sortedNames(o.peers) {
		m := o.peers[name].meta
		if alone || !m.Leader || m.Group == o.core.Group() {
			delete(o.rivals, name)
			continue
		}
		if _, known := o.rivals[name]; !known {
			o.rivals[name] = c.now()
		}
		due := o.rivals[name] + rivalAfter
		if c.now() >= due {
			return m, true, due
		}
		if again == 0 || due < again {
			again = due
		}
	}
	return meta{}, false, again
}
