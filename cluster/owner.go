package cluster

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/mortise-lock/mortise/cluster/discovery"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// owner is everything that the owner goroutine owns.
type owner struct {
	core     *founding.Core
	key      nodeid.Key // of this life
	next     nodeid.Key // of the life that the next restart in place begins
	book     founding.Book
	raft     uint64                   // of this life
	back     bool                     // its directory says that it was a member already
	peers    map[string]gossip.Meta   // by memberlist's name; whom gossip sees, this instance among them
	rivals   map[string]time.Duration // who of them says that another group leads, and since when
	join     *discovery.Join          // what Join and JoinFunc lead to
	listed   []Member                 // for publish; nil: peers has changed
	listedAt uint64                   // the configuration of which it tells who votes
	self     Member                   // this instance, as listed
	moved    bool                     // places must be told to the core anew
	busy     int                      // questions under way
	backlog  []founding.Question      // waiting for one to end
	asking   map[string]bool          // the addresses of those under way
	find     finder
	pull     pulling
	lead     lead.Lead
	said     report
	telling  context.CancelFunc // ends the telling of a configuration that is under way; nil: none is
	told     gossip.Meta        // what gossip says about this instance
	notes    notebook
	unsaved  error // not yet told to the host
}

// newOwner makes the owner of an instance; resume is what a directory adds to its configuration.
func newOwner(cfg *Config, resume founding.Config) owner {
	resume.Instance, resume.Name, resume.Addr = cfg.Key.ID(), cfg.Name, cfg.Advertise
	resume.Settings, resume.Rules = cfg.Settings, cfg.Rules
	o := owner{
		core: founding.New(resume), key: cfg.Key, next: nodeid.NewKey(cfg.Random),
		peers: make(map[string]gossip.Meta), rivals: make(map[string]time.Duration), asking: make(map[string]bool), moved: true, find: newFinder(cfg.Advertise),
	}
	if resume.Stored != nil {
		o.back = resume.Stored.Phase == founding.Member
		o.book.Configure(resume.Stored.At, resume.Stored.Voters)
	}
	o.join = newJoin(cfg)
	return o
}

// keyOf returns the private key of a life of this instance: the present one, or the one that the core has just begun.
func (o *owner) keyOf(life nodeid.ID) nodeid.Key {
	if life == o.next.ID() {
		return o.next
	}
	return o.key
}

// begin makes the key of the life that a restart in place has begun the present one, and returns it.
func (o *owner) begin(life nodeid.ID, random func([]byte)) nodeid.Key {
	o.key = o.keyOf(life)
	o.next = nodeid.NewKey(random)
	return o.key
}

// loop is the owner goroutine. It alone touches c.own; everybody else posts to the inbox. It ends when Close cancels c.ctx, and takes
// along whatever it has started.
func (c *Cluster) loop() {
	defer close(c.done)
	defer c.helper.Wait()
	defer c.hush()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-c.in.wake:
		case <-timer.C:
		case <-c.ctx.Done():
			return
		}
		runtime.Gosched() // let those who are about to post do so: one turn for many
		for _, it := range c.in.take() {
			if c.ctx.Err() == nil && c.in.lives(it) { // Close may have given up on the one before, and the host may be gone
				it.do()
			}
		}
		if c.ctx.Err() == nil {
			timer.Reset(c.turn())
		}
	}
}

// turn lets the core look at what has happened, stores what it decides and carries it out, and returns how long nothing need be done.
func (c *Cluster) turn() time.Duration {
	now := c.now()
	next := now + time.Hour
	if !c.cfg.Settings.Solo {
		next = c.resolve(now)
		c.places()
	}
	if c.gossip != nil {
		next = min(next, c.rejoin(now))
	}
	c.pull(now)
	out := c.own.core.Tick(now, c.wall(), c.random())
	c.persist(&out)
	if c.ctx.Err() != nil {
		return 0
	}
	for _, e := range out.Events {
		if c.ctx.Err() != nil {
			return 0 // Close may have given up on the last one, and the host may be gone
		}
		c.carryOut(e)
	}
	c.confess()
	govern := c.govern(now)
	if c.ctx.Err() != nil {
		return 0
	}
	for _, q := range out.Questions {
		c.put(q)
	}
	c.announce()
	c.publish()
	next = min(next, out.Next, govern, c.pullDue(now), c.report(now))
	return max(next-c.now(), time.Millisecond)
}

// carryOut carries out one decision of birth. The view is published first, so that the host finds in it what it is told.
func (c *Cluster) carryOut(e founding.Event) {
	o := &c.own
	switch e.Kind {
	case founding.BoundTo:
		o.raft = e.Raft
		c.configure(e.Group, charterAt, e.Charter.Voters)
		c.cfg.Logger.Debug("bound to a charter", "group", idText(e.Group), "listed", len(e.Charter.List), "voters", len(e.Charter.Voters))
		c.cfg.Host.Bound(e.Charter, e.Raft)
	case founding.AllBound:
		c.cfg.Host.AllBound(e.Group)
	case founding.Joined:
		c.configure(e.Group, e.At, e.Voters)
		c.belongs(e)
		c.cfg.Host.Member(e.Group, o.book.Voters())
	case founding.Restarted:
		c.cfg.Logger.Debug("restarting in place", "why", e.Text, "instance", e.Instance)
		c.tellAll(nil)
		o.back = false
		o.raft, o.book, o.backlog, o.pull, o.lead = 0, founding.Book{}, nil, pulling{}, lead.Lead{}
		c.yield()
		c.publish()
		c.cfg.Host.Restart(o.begin(e.Instance, c.cfg.Random), errors.New(e.Text))
		c.in.nextLife() // what the old life has still reported means nothing any more
	case founding.Heard:
		c.configured(e.Group, e.At, e.Voters)
	case founding.Prepared:
		o.raft = e.Raft
		c.publish()
		c.cfg.Logger.Debug("the leader has asked for a replica", "group", idText(e.Group), "raft", idText(e.Raft))
		c.cfg.Host.Prepared(e.Group, e.Raft)
	case founding.Removed:
		if o.raft == e.Raft {
			o.raft = 0
		}
		c.publish()
		c.cfg.Host.Removed(e.Raft)
	case founding.Barred:
		c.refuse(e.Text)
	}
}

// charterAt is the index of the configuration that a charter makes.
const charterAt = 1

// configure makes the address book that of the group's voters.
func (c *Cluster) configure(group, at uint64, voters []Voter) {
	c.own.book.Configure(at, voters)
	if o := &c.own; o.raft != 0 { // of all addresses its own is the one that it knows best
		o.book.Hear(Voter{Raft: o.raft, Instance: o.core.Instance(), Addr: c.cfg.Advertise, Life: o.core.Life()}, true)
	}
	c.own.core.Voters(c.now(), group, c.own.book.At(), c.own.book.Voters())
	c.publish()
}

// readdressed passes on that voters have moved.
func (c *Cluster) readdressed(changed bool) {
	if !changed {
		return
	}
	c.own.core.Voters(c.now(), c.own.core.Group(), c.own.book.At(), c.own.book.Voters())
	c.publish()
	c.tellVoters()
	if !c.own.lead.Leads() {
		return
	}
	for _, v := range c.own.book.Voters() { // the others believe the leader
		if v.Instance != c.own.core.Instance() {
			c.announceTo(v.Instance, v.Addr, 1)
		}
	}
}

// answer answers a question once that to which it binds this instance is stored, and says once in a while that a closed group was asked.
func (c *Cluster) answer(from Asker, question []byte) []byte {
	c.own.core.Guide(c.cfg.Host.Guide())
	b := c.own.core.Ask(c.now(), c.wall(), from, question)
	if !c.persist(&founding.Output{}) {
		return nil
	}
	if c.cfg.Settings.Solo && b != nil {
		c.knocked(from.Addr)
	}
	return b
}
