package cluster

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Times and bounds of spreading a configuration.
const (
	pullWithin    = 2 * time.Second // how long one peer is waited for who knows a newer one
	pullSoon      = pullWithin / 8  // the same for a voter that does not lead
	announceTries = 4
	announcePause = time.Second
	strayPause    = time.Second // between two announcements to one stray
	straysMax     = 64          // strays that are remembered
)

// Configured takes that the log here has applied a configuration of the group: who has a replica, learners included. at is the log index of
// the entry that made it: of two configurations the one with the higher index is the newer, wherever it was heard of.
func (c *Cluster) Configured(group, at uint64, voters []Voter) {
	voters = slices.Clone(voters)
	c.in.postOfLife(func() { c.configured(group, at, voters) })
}

// Applied takes the configuration that the log here has applied, with both its halves if it is joint.
// A group is given up only if no majority of such a configuration is left.
func (c *Cluster) Applied(group uint64, applied founding.Configuration) {
	c.in.postOfLife(func() { c.own.core.Applied(c.now(), group, applied) })
}

// Log takes how far the log of a replica here goes while it knows no leader, zeros while it does.
func (c *Cluster) Log(raft uint64, log founding.Log) {
	c.in.postOfLife(func() { c.own.core.Log(c.now(), raft, log) })
}

// Gone takes that an instance has said on its own connection that the replica that it had is over, and lets the leader know. With a
// directory the next process may go on with it.
func (c *Cluster) Gone(instance nodeid.ID) {
	c.in.postOfLife(func() {
		c.own.core.Departed(c.now(), instance)
		if c.own.lead.Gone(instance, c.own.book.Voters()) {
			c.looking.Store(true)
		}
	})
}

// Retired takes that the replica here has stopped by itself. Its raft ID is never used again.
func (c *Cluster) Retired(raft uint64) {
	c.in.postOfLife(func() {
		if c.own.raft == raft {
			c.own.raft = 0
		}
		c.own.core.Retired(c.now(), raft)
	})
}

// configured takes a configuration, applied here or heard of. An older one than is known changes nothing; of the one that is known, and
// where at is 0, it may say newer addresses.
func (c *Cluster) configured(group, at uint64, voters []Voter) {
	o := &c.own
	if group == 0 || group != o.core.Group() {
		return
	}
	known := o.book.At()
	switch {
	case at < known && at != 0:
		o.core.Voters(c.now(), group, at, voters) // an older one that names this instance's replica tells that it was removed since
	case at <= known:
		changed := false
		for _, v := range voters {
			changed = o.book.Hear(v, false) || changed
		}
		c.readdressed(changed)
	default:
		before := o.book.Voters()
		c.configure(group, at, voters)
		o.pull.until = 0 // whoever knows a still newer one is asked at once
		c.dismiss(before)
		c.tellAttached(before)
		c.tellVoters()
		c.looking.Store(true)
	}
}

// tellVoters tells the host the whole address book. Who is not a member yet is told by Bound and Member.
func (c *Cluster) tellVoters() {
	if c.own.core.Phase() == founding.Member && !c.own.core.Settling() {
		c.cfg.Host.Voters(c.own.book.Voters())
	}
}

// dismiss lets the leader tell the replicas that the configuration before named and this one does not (rule 14), where they were last.
func (c *Cluster) dismiss(before []Voter) {
	gone := slices.DeleteFunc(before, func(v Voter) bool {
		_, stays := c.own.book.Find(v.Raft)
		return stays || v.Instance == c.own.core.Instance()
	})
	if len(gone) == 0 {
		return
	}
	if _, _, leads := c.cfg.Host.Facts(); !leads {
		return
	}
	for _, v := range gone {
		c.announceTo(v.Instance, v.Addr, announceTries)
	}
}

// tellAttached lets the leader tell all whose sessions are attached to it, so that they know the voters of now when it is gone: of
// several changes within a second each may replace a voter, and an instance that knows none of them any more has to begin anew.
func (c *Cluster) tellAttached(before []Voter) {
	if c.own.lead.Leads() {
		c.tellAll(c.own.lead.Attached(slices.Concat(before, c.own.book.Voters()))) // these hear it by the log, or by dismiss
	}
}

// tellAll tells instances the newest configuration, a few at a time and each once. What is still to
// be told of an older one is not.
func (c *Cluster) tellAll(all []Voter) {
	o := &c.own
	if o.telling != nil {
		o.telling()
	}
	if c.cfg.Net == nil || len(all) == 0 || o.core.Phase() != founding.Member || o.core.Settling() || o.book.At() == 0 {
		return
	}
	var ctx context.Context
	ctx, o.telling = context.WithCancel(c.ctx)
	a := founding.Announce{Group: o.core.Group(), At: o.book.At(), Voters: o.book.Voters()}
	next := make(chan Voter, len(all))
	for _, v := range all {
		next <- v
	}
	close(next)
	workers := asksMax
	for range min(workers, len(all)) {
		c.help(func() {
			for v := range next {
				if ctx.Err() != nil {
					return
				}
				one := a
				one.To = v.Instance
				asking, cancel := context.WithTimeout(ctx, askWithin)
				_, _, _ = c.cfg.Net.Ask(asking, v.Addr, v.Instance, founding.AppendAnnounce(nil, one)) // an inquiry finds what is missed
				cancel()
			}
		})
	}
}

// announceTo tells an instance the newest configuration, until it has answered, nobody is there, or it was tried that often.
func (c *Cluster) announceTo(instance nodeid.ID, addr string, tries int) {
	o := &c.own
	if c.cfg.Net == nil || addr == "" || o.core.Phase() != founding.Member || o.core.Settling() || o.book.At() == 0 {
		return
	}
	body := founding.AppendAnnounce(nil, founding.Announce{To: instance, Group: o.core.Group(), At: o.book.At(), Voters: o.book.Voters()})
	c.help(func() {
		for try := range tries {
			if try > 0 && !wait(c.ctx, announcePause) {
				return
			}
			ctx, cancel := context.WithTimeout(c.ctx, askWithin)
			answer, _, err := c.cfg.Net.Ask(ctx, addr, instance, body)
			cancel()
			if outcomeOf(answer, err) != founding.Silent {
				return
			}
		}
	})
}

// wait waits that long and reports true, or returns false as soon as ctx ends.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// strays are the instances that were told lately that they are in no configuration.
type strays struct {
	mu   sync.Mutex // guards told; held only for a look at it
	told map[nodeid.ID]time.Duration
}

// Stray takes that somebody whose raft ID is in no configuration speaks raft here. It is told the newest one, at most once a second: it
// was removed and has not heard of it. It may be called for every message, on any goroutine.
func (c *Cluster) Stray(instance nodeid.ID, addr string) {
	if c.strays.due(instance, c.now()) {
		c.in.post(func() { c.announceTo(instance, addr, 1) })
	}
}

// due reports whether a stray is to be told now, and notes it.
func (s *strays) due(instance nodeid.ID, now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, known := s.told[instance]; known && now-last < strayPause {
		return false
	}
	if s.told == nil {
		s.told = make(map[nodeid.ID]time.Duration)
	}
	for who, last := range s.told {
		if now-last >= strayPause {
			delete(s.told, who)
		}
	}
	if len(s.told) >= straysMax {
		return false
	}
	s.told[instance] = now
	return true
}

// pulling is the search for a newer configuration, of which gossip says that there is one. The owner goroutine owns it.
type pulling struct {
	until time.Duration // nothing is asked before that; 0: at once
	turn  int
}

// pull asks the leader, or a voter that is known, if gossip says that there is a newer configuration of this group. Gossip is only a
// reason to ask: another instance may say so falsely, and its own word would not count.
func (c *Cluster) pull(now time.Duration) {
	p := &c.own.pull
	if now < p.until || !c.behind() {
		return
	}
	leader, addr := c.whom(p.turn)
	p.until = now + pullWithin
	if leader != c.cfg.Host.Guide() {
		p.until = now + pullSoon // a voter may not know more
	}
	p.turn++
	c.own.core.Inquire(now, addr)
}

// pullDue is when pull has something to do.
func (c *Cluster) pullDue(now time.Duration) time.Duration {
	if !c.behind() {
		return now + time.Hour
	}
	return max(c.own.pull.until, now)
}

// behind reports whether gossip says that another member of the group knows a newer configuration.
func (c *Cluster) behind() bool {
	o := &c.own
	if o.core.Phase() != founding.Member || o.core.Settling() {
		return false // an instance that is no member yet asks all others anyway
	}
	for _, m := range o.peers {
		if m.Group == o.core.Group() && m.At > o.book.At() && m.Addr != c.cfg.Advertise {
			return true
		}
	}
	return false
}
