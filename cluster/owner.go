package cluster

import (
	"errors"
	"runtime"
	"time"

	"github.com/mortise-lock/mortise/cluster/discovery"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

type owner struct {
	core     *Core
	key      nodeid.Key      // the key of this incarnation
	next     nodeid.Key      // the key of the next incarnation
	back     bool            // according to the directory, this instance was a member before
	join     *discovery.Join // addresses that Join and JoinFunc lead to
	listed   []Member        // last published members; nil if gossip has changed them
	listedAt uint64          // the configuration's number when the members in listed were collected
	self     Member          // this instance's entry in listed
	busy     int
	backlog  []founding.Question
	asking   map[string]bool // addresses of the questions under way
	said     report
	told     gossip.Meta // the data that gossip last spread about this instance
	notes    notebook
	alarms   alarms
	unsaved  error // an error of the directory that the host does not know yet
}

// newOwner returns the owner of an instance. resume is the data from its directory.
func newOwner(cfg *Config, resume founding.Config) owner {
	resume.Instance, resume.Name, resume.Addr = cfg.Key.ID(), cfg.Name, cfg.Advertise
	resume.Settings, resume.Rules = cfg.Settings, cfg.Rules
	o := owner{
		core: NewCore(CoreConfig{Founding: resume, Zone: cfg.Zone, Gossips: cfg.gossips(), OwnState: cfg.Host}),
		key:  cfg.Key, next: nodeid.NewKey(cfg.Random), asking: make(map[string]bool), join: newJoin(cfg),
		back: resume.Stored != nil && resume.Stored.Phase == founding.Member,
	}
	o.core.Resolved(0, o.join.Entries(), nil)
	return o
}

// keyOf returns the private key of an incarnation: the current one, or the next one if the core has
// just begun it.
func (o *owner) keyOf(life nodeid.ID) nodeid.Key {
	if life == o.next.ID() {
		return o.next
	}
	return o.key
}

func (o *owner) begin(life nodeid.ID, random func([]byte)) nodeid.Key {
	o.key = o.keyOf(life)
	o.next = nodeid.NewKey(random)
	return o.key
}

// loop is the owner goroutine. When Close cancels c.ctx, loop waits for the helpers and ends.
func (c *Cluster) loop() {
	defer close(c.done)
	defer c.helper.Wait()
	defer c.endGossip()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-c.in.wake:
		case <-timer.C:
		case <-c.ctx.Done():
			return
		}
		runtime.Gosched() // lets other goroutines post first, so that one turn handles many items
		for _, it := range c.in.take() {
			// Close may have returned ErrHung before, and the host may no longer exist.
			if c.ctx.Err() == nil && c.in.lives(it) {
				it.do()
			}
		}
		if c.ctx.Err() == nil {
			timer.Reset(c.turn())
		}
	}
}

// turn runs one turn of the core and returns the time until the next turn is due.
func (c *Cluster) turn() time.Duration {
	now, core := c.now(), c.own.core
	next := min(c.resolve(now), core.Turn(now, c.wall(), c.random(), c.id(), c.word(), hands{c}))
	if c.ctx.Err() != nil {
		return 0
	}
	c.push()
	c.publish()
	for _, line := range c.own.alarms.look(now, core.Report()) {
		c.cfg.Logger.Log(c.ctx, line.level, line.text, line.attrs...)
	}
	return max(min(next, c.report(now))-c.now(), time.Millisecond)
}

// hands implements Owner.
type hands struct{ *Cluster }

func (h hands) Store(out *founding.Output) { h.persist(out) }

// Ended reports whether Close was called. Close may have returned ErrHung while a call of the host
// was hanging, so the host must not be called again.
func (h hands) Ended() bool                  { return h.ctx.Err() != nil }
func (h hands) Question(q founding.Question) { h.put(q) }
func (h hands) Carry(step lead.Carry)        { h.carry(step) }
func (h hands) Task(e Task)                  { h.task(e) }
func (h hands) Gossip(addr string)           { h.rejoin(addr) }
func (h hands) Dismiss(raft uint64)          { h.cfg.Host.Dismissed(raft) }

// The channel has a free slot.
func (h hands) Told(told Told) { told.Inquiry.Caller.(chan VoterStatus) <- told.VoterStatus }

func (h hands) Tell(events []founding.Event) {
	h.publish() // first, so that Status contains the change when the host learns of it
	for _, e := range events {
		if h.Ended() {
			return
		}
		h.carryOut(e)
	}
	if !h.Ended() {
		h.reportUnsaved()
	}
}

func (c *Cluster) carryOut(e founding.Event) {
	o := &c.own
	switch e.Kind {
	case founding.BoundTo:
		c.cfg.Logger.Debug("accepted the proposal of a new group", "group", idText(e.Group), "listed",
			len(e.Charter.List), "voters", len(e.Charter.Voters))
		c.cfg.Host.Bound(e.Charter, e.Raft)
	case founding.AllBound:
		c.cfg.Host.AllBound(e.Group)
	case founding.Joined:
		c.belongs(e)
		c.cfg.Host.Member(e.Group, e.Voters)
	case founding.Heard:
		c.cfg.Host.Voters(e.Voters)
	case founding.Restarted:
		c.cfg.Logger.Debug("restarting in place", "why", e.Text, "instance", e.Instance)
		o.back, o.backlog = false, nil
		c.cfg.Host.Restart(o.begin(e.Instance, c.cfg.Random), errors.New(e.Text))
		c.in.nextLife() // late reports of the previous incarnation are dropped
	case founding.Prepared:
		c.cfg.Logger.Debug("the leader has asked for a replica", "group", idText(e.Group), "raft", idText(e.Raft))
		c.cfg.Host.Prepared(e.Group, e.Raft)
	case founding.Removed:
		c.cfg.Host.Removed(e.Raft)
	case founding.Barred:
		c.refuse(e.Text)
	}
}

// answer returns the reply to a question, or nil if there is none. It first stores the promises
// that the reply contains. If this instance runs alone, it also logs that it has refused the
// sender, at most once a minute.
func (c *Cluster) answer(from Asker, question []byte) []byte {
	b := c.own.core.Ask(c.now(), c.wall(), from, question)
	if !c.persist(&founding.Output{}) {
		return nil
	}
	if c.cfg.Settings.Solo && b != nil {
		c.logStranger(from.Addr)
	}
	return b
}
