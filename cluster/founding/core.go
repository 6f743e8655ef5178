package founding

import (
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Config configures the core of one instance.
type Config struct {
	Instance nodeid.ID // of the first life; random, not zero
	Name     string
	Addr     string // host:port at which others reach it
	Settings Settings
	Rules    uint32 // newest version of the lock rules that it knows

	Durable bool   // the host stores State before it sends or carries out anything that depends on it
	Life    uint64 // counts the starts with one directory. 0 counts as 1, its value in memory
	Stored  *State // what the last start has stored. Nil means nothing
}

// Core is one instance's part in founding a group: a state machine with inputs and outputs. It is
// not safe for concurrent use. Unless a method says otherwise, it keeps no slice that was passed to
// it.
type Core struct {
	name     string
	addr     string
	settings Settings
	rules    uint32
	life     uint64

	now  time.Duration // of the last input that carried a time
	wall int64

	// What is known about other instances.
	join   []Entry
	gossip []string
	askers []asker
	tips   []asker  // addresses at which other instances have met founders and voters
	places []*place // by address
	stale  bool     // places must be rebuilt by arrange
	rivals []string // addresses whose last answer named another group with a leader
	// the ID of the last question. A new life continues to count, so that a late answer to a
	// question of an earlier life is recognised
	asked uint64
	lives []presence

	// Only used with a directory; see durable.go.
	durable  bool     // this life is stored in a directory
	revision uint64   // of State
	unfit    string   // why the directory cannot be written. Empty means that it can
	barred   string   // why this instance may never take part again. Empty means that it may
	names    []called // of instances that were met
	// addresses to ask because gossip shows this instance's ID or a newer configuration at them
	seenAt []asker
	gaveUp []uint64 // groups that operators have given up here, oldest first
	floor  int64    // Unix milliseconds; a group founded from now on starts its tokens above it

	// The present life. A restart in place resets all fields below.
	instance nodeid.ID
	phase    Phase
	charter  *Charter // bound to it, or born with it; nil for a newborn and a later member
	group    uint64   // of the charter, or of the group that was joined
	voters   []Voter  // of the group, once it is a member
	at       uint64   // the number of the newest known configuration. 0 without a group
	replica
	applied Configuration // by this life's replica
	log     Log           // of the replica logOf
	logOf   uint64        // raft ID
	fates   []*fate       // of the replicas that are known, oldest first
	// since when all instances that a new group needs have answered without interruption. Zero
	// means that some do not answer
	whole       time.Duration
	doubts      doubts   // about the newest known configuration
	supersedes  []uint64 // the groups that this one has replaced
	rulesOf     Settings // the group's settings, unless phase is Newborn
	leader      bool
	guide       nodeid.ID     // the leader to which this instance is attached. Zero means none
	guided      time.Duration // when another known voter last answered, or there was a leader
	born        bool          // Born is known, and phase is Member at the next Tick
	refused     []uint64      // charters refused in this life, oldest first
	bound       []bool        // which listed instances are known to be bound
	all         bool          // AllBound was reported
	offers      []offer       // our proposals to the listed instances; nil unless the charter is ours
	until       time.Duration // bound: when to give up. Zero means that no time was chosen yet
	since       time.Duration // member: since when it has no leader
	doomed      string        // why this life must end at the next Tick
	settling    bool          // resumed, and not yet ready to take part
	searchUntil time.Duration // resumed: until then it looks for voters that it has not met
	lastAddr    string        // address at which this instance last took part

	roundAt   time.Duration // no founder: the next round of questions. Zero means none is due
	rounds    uint64        // since this life began
	fruitless int           // rounds since the last answer or refusal
	searchAt  time.Duration // founder: the next search among the addresses behind Join
	// member with a leader: the next question to an address behind Join. Zero means not yet drawn
	inquireAt time.Duration

	sinceWall int64      // the same by the wall clock
	events    []Event    // not yet handed out
	asks      []Question // not yet handed out
}

type offer struct {
	pending  uint64 // the question in flight
	next     time.Duration
	accepted bool
}

// New returns the core of a new instance, or of one that resumes from Stored.
func New(cfg Config) *Core {
	c := &Core{
		name: cfg.Name, addr: cfg.Addr, settings: cfg.Settings.normal(), rules: max(cfg.Rules, 1),
		life:  max(cfg.Life, 1),
		stale: true, instance: cfg.Instance, durable: cfg.Durable,
	}
	c.resume(cfg.Stored)
	return c
}

// Instance returns the ID of the present life.
func (c *Core) Instance() nodeid.ID { return c.instance }

// Phase returns how far the present life has come.
func (c *Core) Phase() Phase { return c.phase }

// Group returns the group that this life is bound to or belongs to, or 0.
func (c *Core) Group() uint64 { return c.group }

// Leader records whether this instance knows a leader of its group. A newborn ignores it.
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

// Born records that this instance has applied the group's Born entry. It does nothing if this life
// is bound to another group.
func (c *Core) Born(now time.Duration, group uint64) {
	c.now = now
	if c.phase == Bound && c.group == group {
		c.born = true
	}
}

// Tick advances the time and returns the actions that follow from all inputs since the last Tick.
// The caller must call it after each batch of inputs, and at the latest at the returned time Next.
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

// restart is the restart in place, the only way back to the phase Newborn. It forgets everything
// that a killed process would forget, so it is as safe as kill -9. With a directory the host stores
// the next State before the new life sends anything.
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

// HasLeader reports whether this life knows a leader of its group.
func (c *Core) HasLeader() bool { return c.leader }
