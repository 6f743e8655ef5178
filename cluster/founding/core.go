package founding

import (
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Config is one instance as its user and its random source made it.
type Config struct {
	Instance nodeid.ID // of the first life: random, not zero
	Name     string
	Addr     string // host:port under which others reach it
	Settings Settings
	Rules    uint32 // newest version of the lock rules that it knows

	Durable bool   // what State returns is stored before what has led to it is known to anybody
	Life    uint64 // counts the starts with one directory; 0 counts as 1, which it is in memory
	Stored  *State // what the last start has stored; nil: nothing
}

// Core is one instance's part in birth: a state machine that is fed with inputs and answers with
// outputs. It is not safe for concurrent use and keeps none of the slices it is given unless it
// says so.
type Core struct {
	name     string
	addr     string
	settings Settings
	rules    uint32
	life     uint64

	now  time.Duration // of the last input that carried it
	wall int64

	// What the world looks like from here.
	join   []Entry
	gossip []string
	knocks []knock
	tips   []knock  // addresses at which others have met founders and voters
	places []*place // by address
	stale  bool     // places no longer match what they are made from
	rivals []string // addresses at which an instance has last said that another group has a leader
	asked  uint64   // the last question's ID; counts on over lives, so that an answer to an earlier life is recognised
	lives  []presence

	// What only a directory brings; see durable.go.
	durable  bool     // this life is in a directory
	revision uint64   // of State
	unfit    string   // why the directory cannot be written; empty: it can
	barred   string   // why this instance may never take part again; empty: it may
	names    []called // of instances that were met
	// places to ask because gossip shows this instance's ID there, or knows a newer configuration
	// there
	suspects []knock
	gaveUp   []uint64 // groups that people have given up here, oldest first
	floor    int64    // a group that is founded from now on starts its tokens above this, in Unix milliseconds

	// This life. Everything below is lost in a restart in place.
	instance nodeid.ID
	phase    Phase
	charter  *Charter // bound to it, or born with it; nil for a newborn and for a member that joined later
	group    uint64   // of the charter, or of the group that was joined
	voters   []Voter  // of the group, once it is a member
	at       uint64   // the number of their configuration, the newest that is known; 0: no group
	replica
	applied    Configuration // by this life's replica
	log        Log           // of the replica logOf
	logOf      uint64        // raft ID
	fates      []*fate       // of the replicas that are known, oldest first
	whole      time.Duration // since when all that a new group needs answer without a break; zero means they do not
	doubts     doubts        // of the newest configuration that is known
	supersedes []uint64      // what the group took the place of
	rulesOf    Settings      // the group's settings, where phase is not Newborn
	leader     bool
	guide      nodeid.ID     // the leader to which this instance is attached; zero if none is
	guided     time.Duration // when another voter that is known here has answered, or there was a leader
	born       bool          // Born is known, and phase is Member at the next Tick
	refused    []uint64      // charters refused in this life, oldest first
	bound      []bool        // who on the list is known to be bound
	all        bool          // AllBound was reported
	offers     []offer       // to whom on the list we propose; nil unless the charter is our own
	until      time.Duration // bound: when to give up; 0: to be drawn
	since      time.Duration // member: without a leader since
	doomed     string        // why this life must end at the next Tick
	settling   bool          // resumed, and looking around before it takes part
	seekUntil  time.Duration // resumed: until then it looks for voters that it has not met
	home       string        // address at which this instance last took part

	roundAt   time.Duration // no founder: the next round of questions; 0: none is due
	rounds    uint64        // since this life began
	fruitless int           // those of them since the last answer or refusal
	searchAt  time.Duration // founder: the next search among the addresses behind Join
	inquireAt time.Duration // member with a leader: the next question to an address behind Join; 0: to be drawn

	sinceWall int64      // since, by the wall clock
	events    []Event    // not yet handed out
	asks      []Question // not yet handed out
}

// offer is the proposal of our charter to one instance on its list.
type offer struct {
	pending  uint64 // the question in flight
	next     time.Duration
	accepted bool
}

// New returns the core of an instance that was just born, or that goes on where its directory says.
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

// Leader takes whether this instance knows a leader of its group. A newborn has none, whatever it
// is told.
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

// Born takes that Born of the group was applied here. It does nothing if this life is bound to
// another.
func (c *Core) Born(now time.Duration, group uint64) {
	c.now = now
	if c.phase == Bound && c.group == group {
		c.born = true
	}
}

// Tick lets time pass and returns everything that is to be done about what has happened since the
// last call. It must be called after every batch of other inputs, and at the latest at the time
// that the last one named.
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

// decide takes the next step of this life, if it is time for one.
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

// restart is the restart in place: the one way back. It is as safe as being killed and started
// again, because it forgets as much. With a directory the charter and its raft ID are gone from
// there, by the new State, before the new life says anything.
func (c *Core) restart(random Random) {
	reason := c.doomed
	*c = Core{
		name: c.name, addr: c.addr, settings: c.heirs(), rules: c.rules, life: c.life, now: c.now, wall: c.wall,
		names: c.names,
		join:  c.join, gossip: c.gossip, knocks: c.knocks, tips: c.tips, stale: true,
		asked: c.asked, events: c.events, lives: c.lives,
		durable: c.durable, revision: c.revision + 1, unfit: c.unfit, home: c.addr, instance: random.Instance,
		gaveUp: c.gaveUp, floor: c.floor,
	}
	c.events = append(c.events, Event{Kind: Restarted, Instance: c.instance, Text: reason})
}

// HasLeader reports whether this life knows a leader of its group.
func (c *Core) HasLeader() bool { return c.leader }
