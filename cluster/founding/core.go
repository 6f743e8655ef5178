package founding

import (
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Config configures the core of one instance.
type Config struct {
	Instance nodeid.ID // ID of the first incarnation; random, not zero
	Name     string
	Addr     string // host:port at which other instances reach this instance
	Settings Settings
	Rules    uint32 // newest version of the lock rules that this instance supports

	Durable bool // the host stores State before it sends or does anything that depends on it
	// number of starts with this directory; 1 without a directory; 0 means 1
	Life uint64
	// random number of this process, which tells two starts of the same number apart; 0 means none
	Boot   uint64
	Stored *State // State that the last start has stored; nil means none
}

// Core is the state machine that founds a group on behalf of one instance. A Core is not safe for
// concurrent use. It keeps no slice that is passed to a method, unless the method's comment says
// so.
type Core struct {
	name     string
	addr     string
	settings Settings
	rules    uint32
	life     uint64
	boot     uint64

	now  time.Duration
	wall int64

	join   []Entry
	gossip []string
	askers []asker
	tips   []asker  // addresses at which other instances have met founders and voters
	places []*place // in ascending order of address
	stale  bool
	rivals []string // addresses whose last answer named another group with a leader
	// ID of the last question; a new incarnation continues to count, so that late answers to an
	// earlier incarnation are recognised
	asked uint64
	lives []presence

	// Only used with a directory:
	durable  bool
	revision uint64
	unfit    string // why the directory cannot be written; empty if it can
	barred   string // why this instance may never take part again; empty if it may
	names    []called
	// addresses that must be asked, because gossip reports this instance's ID or a newer
	// configuration there
	seenAt []asker
	gaveUp []uint64 // groups that operators have given up here, oldest first
	floor  int64    // Unix milliseconds; the tokens of a group founded from now on are higher

	// State of this incarnation. A restart in place resets all fields below.
	instance nodeid.ID
	phase    Phase
	charter  *Charter // nil for a newborn, and for a member that joined a founded group
	group    uint64
	voters   []Voter // empty until the group is founded or joined
	at       uint64  // number of the newest known configuration; 0 without a group
	replica
	// newest configuration that this instance's replica has applied; if this instance runs no
	// replica, the newest one that any believed instance has applied
	applied Configuration
	log     Log     // position of the log of replica logOf
	logOf   uint64  // raft ID
	fates   []*fate // known replicas, oldest first
	// the time since which all instances that a new group needs have answered without a break;
	// zero if some do not answer
	whole      time.Duration
	doubts     doubts
	supersedes []uint64
	rulesOf    Settings // settings of the group, unless phase is Newborn
	leader     bool
	guide      nodeid.ID     // leader to which this instance is attached; zero means none
	guided     time.Duration // when another known voter last answered or a leader was last known
	born       bool          // the group is founded; phase becomes Member at the next Tick
	refused    []uint64      // charters that this incarnation has refused, oldest first
	bound      []bool        // which listed instances are known to be bound
	all        bool          // AllBound was emitted
	// proposals to the listed instances; nil if this instance did not propose the charter
	offers []offer
	// when to give the charter up, or to end settling; zero means not set
	until time.Duration
	since time.Duration // when this member lost its leader
	// why this incarnation must end at the next Tick; empty if it need not
	doomed      string
	settling    bool
	searchUntil time.Duration // end of the search for other voters after a restart
	lastAddr    string        // address at which this instance last took part

	// time of the next round of questions, if this instance is no founder; zero means not set
	roundAt   time.Duration
	rounds    uint64
	fruitless int           // rounds since the last answer or refusal
	searchAt  time.Duration // time of a founder's next search among the Join addresses
	// time of the next question to a Join address, for a member with a leader; zero means not set
	inquireAt time.Duration

	sinceWall int64 // the same time as in the field since, by the wall clock
	// lostLeader is set if this incarnation has had a leader, and since is the time of its loss.
	lostLeader bool
	events     []Event
	asks       []Question
}

type offer struct {
	pending  uint64 // ID of the pending question; zero means none
	next     time.Duration
	accepted bool
}

// New returns the core of a new instance, or of an instance that resumes from Stored.
func New(cfg Config) *Core {
	c := &Core{
		name: cfg.Name, addr: cfg.Addr, settings: cfg.Settings.normal(), rules: max(cfg.Rules, 1),
		life: max(cfg.Life, 1), boot: cfg.Boot,
		stale: true, instance: cfg.Instance, durable: cfg.Durable,
	}
	c.resume(cfg.Stored)
	return c
}

// Instance returns the ID of the present incarnation.
func (c *Core) Instance() nodeid.ID { return c.instance }

// Phase returns the phase of the present incarnation.
func (c *Core) Phase() Phase { return c.phase }

// Group returns the group that this incarnation is bound to or belongs to, or 0.
func (c *Core) Group() uint64 { return c.group }

// Leader records whether this instance knows a leader of its group. A newborn ignores the call.
func (c *Core) Leader(now time.Duration, known bool) {
	c.now = now
	if known || c.leader {
		c.guided = now
	}
	known = known && c.phase != Newborn
	if c.leader && !known {
		c.since, c.sinceWall, c.lostLeader = now, c.wall, true
	}
	c.leader = known
}

// Born records that this instance has applied the Born entry of the group. It does nothing unless
// this incarnation is bound to that group.
func (c *Core) Born(now time.Duration, group uint64) {
	c.now = now
	if c.phase == Bound && c.group == group {
		c.born = true
	}
}

// Tick advances the time and returns all actions that follow from the inputs since the last Tick.
// The host must call it after every batch of inputs, and no later than Output.Next.
func (c *Core) Tick(now time.Duration, wallUnixMS int64, random Random) Output {
	c.now, c.wall = now, wallUnixMS
	c.arrange()
	c.decide(random)
	if c.doomed != "" && c.barred == "" {
		c.restart(random)
		c.arrange()
	}
	next := c.ask(random)
	out := Output{Questions: c.asks, Events: c.events, Next: next}
	c.asks, c.events = nil, nil
	return out
}

func (c *Core) decide(random Random) {
	switch {
	case c.doomed != "" || c.barred != "":
	case c.settling:
		c.settle()
	case c.phase == Newborn:
		c.newborn(random)
	case c.phase == Bound:
		c.tentative(random)
	case c.phase == Member:
		c.member()
	}
}

// restart carries out the restart in place. It forgets everything that a killed process forgets, so
// it is as safe as a kill.
func (c *Core) restart(random Random) {
	reason := c.doomed
	*c = Core{
		name: c.name, addr: c.addr, settings: c.nextSettings(), rules: c.rules, life: c.life, now: c.now, wall: c.wall,
		names: c.names,
		join:  c.join, gossip: c.gossip, askers: c.askers, tips: c.tips, stale: true,
		asked: c.asked, events: c.events, lives: c.lives,
		durable: c.durable, revision: c.revision + 1, unfit: c.unfit, lastAddr: c.addr, instance: random.Instance,
		gaveUp: c.gaveUp, floor: c.floor,
	}
	c.events = append(c.events, Event{Kind: Restarted, Instance: c.instance, Text: reason})
}

// HasLeader reports whether this instance knows a leader of its group.
func (c *Core) HasLeader() bool { return c.leader }
