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
		Instance: o.core.Instance(), Group: o.core.Group(), At: o.book.At(), Leader: o.core.HasLeader(),
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
	o.peers[name] = member{meta: m}
	o.find.remember(m.Addr)
	if bug("gossip-moves-voters") {
		for _, v := range o.book.Voters() {
			if v.Instance == m.Instance {
				v.Addr, v.Life = m.Addr, v.Life+1
				c.readdressed(o.book.Hear(v, true))
			}
		}
	}
	if m.Instance == o.core.Instance() {
		o.core.Suspect(c.now(), m.Addr)
	}
}

// rivalAfter is how long another instance must go on saying that another group has a leader until it is asked: longer than gossip takes
// to find out that it is dead. A group that was founded anew meets the last words of the one before. rivalFresh is how long its answer
// counts.
const (
	rivalAfter = 45 * time.Second
	rivalFresh = 15 * time.Second
	rivalAgain = time.Second // until its answer is looked for
)

// rival returns a member of another group that has a leader, while ours has one too, and when to look again: zero if there is no hint of
// one. There is no way to merge the two. Gossip is only the hint: the instance itself has to say it when it is asked.
func (c *Cluster) rival() (who birth.Who, two bool, again time.Duration) {
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
			met, ok := o.core.Met(c.now(), m.Addr, rivalFresh)
			if bug("rival-by-hearsay") {
				return birth.Who{Name: m.Name, Addr: m.Addr, Group: m.Group}, true, due
			} else if !ok {
				o.core.Inquire(c.now(), m.Addr)
			} else if met.Phase == birth.Member && met.Leader && met.Group != o.core.Group() && !met.Settings.Solo {
				return met, true, due
			}
			due = c.now() + rivalAgain
		}
		if again == 0 || due < again {
			again = due
		}
	}
	return birth.Who{}, false, again
}
