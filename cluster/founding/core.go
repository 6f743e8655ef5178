package founding

import (
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Config configures the core of one instance.
type Config struct {
	Instance nodeid.ID // ID of the first incarnation; random, not zero
	Name     string
	Addr     string // host:port at which other instances reach this one
	Settings Settings
	Rules    uint32 // newest version of the lock rules that this instance knows

	Durable bool // the host stores State before it sends or does anything that depends on it
	// number of starts with this directory. 0 means 1, which is also the value in memory
	Life   uint64
	Stored *State // state that the last start has stored. Nil means none
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

	now  time.Duration // time of the last input that had a time
	wall int64

	// Knowledge about other instances.
	join   []Entry
	gossip []string
	askers []asker
	tips   []asker  // addresses at which other instances have met founders and voters
	places []*place // in ascending order of address
	stale  bool     // arrange must rebuild places
	rivals []string // addresses whose last answer named another group with a leader
	// ID of the last question. A new incarnation continues to count, so that a late answer to an
	// earlier incarnation is recognised
	asked uint64
	lives []presence

	// Fields that are only used with a directory; see durable.go.
	durable  bool     // a directory holds the state of this incarnation
	revision uint64   // number of changes of State
	unfit    string   // why the directory cannot be written; empty if it can be written
	barred   string   // why this instance may never take part again; empty if it may take part
	names    []called // names of instances that were met
	// addresses at which gossip reports this instance's ID or a newer configuration, so they must
	// be asked
	seenAt []asker
	gaveUp []uint64 // groups that operators have given up here, oldest first
	floor  int64    // Unix milliseconds; the tokens of a group founded from now on are higher

	// State of this incarnation. A restart in place resets all fields below.
	instance nodeid.ID
	phase    Phase
	charter  *Charter // nil for a newborn, and for a member that joined a founded group
	group    uint64   // the charter's group, or the group that was joined
	voters   []Voter  // voters of the group; empty until it is founded or joined
	at       uint64   // number of the newest known configuration. 0 without a group
	replica
	// newest configuration that this instance's replica has applied; without a replica, the newest
	// believed one
	applied Configuration
	log     Log     // position of the log of the replica logOf
	logOf   uint64  // raft ID
	fates   []*fate // records of the known replicas, oldest first
	// since when all instances that a new group needs have answered without a break. Zero means
	// that some of them do not answer
	whole      time.Duration
	doubts     doubts   // doubts about the newest known configuration
	supersedes []uint64 // groups that this group has replaced
	rulesOf    Settings // the group's settings, unless phase is Newborn
	leader     bool
	guide      nodeid.ID     // the leader to which this instance is attached. Zero means none
	guided     time.Duration // when another known voter last answered or a leader was last known
	born       bool          // the group is founded; phase becomes Member at the next Tick
	refused    []uint64      // charters that this incarnation has refused, oldest first
	bound      []bool        // whether each listed instance is known to be bound
	all        bool          // the event AllBound was emitted
	// state of our proposals to the listed instances; nil if the charter is not ours
	offers []offer
	// when to give the charter up, or to end settling. Zero means not set
	until time.Duration
	since time.Duration // when this member lost its leader
	// why this incarnation must end at the next Tick; empty if it need not end
	doomed      string
	settling    bool          // the instance has restarted and is not yet ready to take part
	searchUntil time.Duration // end of the search, after a restart, for voters that were not met since
	lastAddr    string        // address at which this instance last took part

	// time of the next round of questions, if this instance is no founder. Zero means not set
	roundAt   time.Duration
	rounds    uint64        // number of rounds of this incarnation
	fruitless int           // rounds since the last answer or refusal
	searchAt  time.Duration // time of a founder's next search among the Join addresses
	// time of the next question to a Join address, for a member with a leader. Zero means not set
	inquireAt time.Duration

	sinceWall int64      // the time since, by the wall clock
	events    []Event    // not yet returned by Tick
	asks      []Question // not yet returned by Tick
}

type offer struct {
	pending  uint64 // ID of the pending question. Zero means none
	next     time.Duration
	accepted bool
}

// New returns the core of a new instance, or of an instance that resumes from Stored.
func New(cfg Config) *Core {
	c := &Core{
		name: cfg.Name, addr: cfg.Addr, settings: cfg.Settings.normal(), rules: max(cfg.Rules, 1),
		life:  max(cfg.Life, 1),
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
		c.since, c.sinceWall = now, c.wall
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

// restart carries out the restart in place, the only way back to Newborn. It forgets all that a
// killed process forgets, so it is as safe as a kill. With a directory, the host stores State
// before the new incarnation sends anything.
func (c *Core) restart(random Random) {
	reason := c.doomed
	*c = Core{
		name: c.name, addr: c.addr, settings: c.heirs(), rules: c.rules, life: c.life, now: c.now, wall: c.wall,
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
