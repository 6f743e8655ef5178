package replica

import (
	"sync"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/keeper"
)

// The election timeout is 500 ms: longer than any stall of a healthy machine, and short enough that
// a failover stays below two seconds.
const (
	RaftTick        = 25 * time.Millisecond
	ElectionTicks   = 20
	HeartbeatTicks  = 4
	ElectionTimeout = ElectionTicks * RaftTick
)

// Keeper is the inbox of the keeper of the sessions.
type Keeper interface {
	Role(keeper.Role)
	Leads(keeper.Leadership)
	Applied(*lockfsm.Result)
	Confirmed(term, round uint64)
	ProposeAdopt(term uint64, ttl time.Duration, settings []byte, budgets session.Budgets)
	ProposeRaise(term uint64, version uint32)
}

// Cluster is the inbox of the cluster's owner, and the address book.
type Cluster interface {
	Book
	Log(raft uint64, log founding.Log)
	Configured(group, at uint64, voters []founding.Voter)
	Applied(group uint64, applied founding.Configuration)
	BornApplied(group uint64)
	Adopt(group uint64, settings founding.Settings)
	Look()
}

// Host is the instance that has the replica. Its methods are called in the middle of the Core's and
// must not call it.
type Host interface {
	// RoleChanged says that the View has another role.
	RoleChanged()
	// Configured says that the View has another configuration.
	Configured()
	// Answering is told of a result before the keeper is. Only a replica that leads is asked to.
	Answering(*lockfsm.Result)
	// Born says, once, that the group is born, and returns the time.
	Born() clock.Time
	// Retired says that the replica has stopped by itself. It is the last call.
	Retired(error)
}

// Trail is an account of what a replica applies, as history.Trail writes it.
type Trail interface {
	Mark()
	Start(index uint64, machine *lockfsm.Machine)
	Entry(index uint64, batch []byte)
	Result(result lockfsm.Result, machine *lockfsm.Machine)
}

// CoreConfig is what a Core needs.
type CoreConfig struct {
	Group, ID uint64
	Machine   *lockfsm.Machine // nil if the leader is to send the first snapshot
	Keeper    Keeper
	Cluster   Cluster
	Host      Host
	Trail     Trail      // nil if no account is kept
	Step      func() int // the size of a step of a snapshot, or nil
	Solo      bool       // the group is of one instance that no other may join
}

// Core is what a replica makes of what its log hands out: it feeds the state machine and says who
// is to hear of what. It implements raftlog.Applier: the goroutine that owns the log owns it, and
// alone calls it, but for the methods that say otherwise.
type Core struct {
	View      *View
	Registry  Registry
	Questions *Questions

	config  CoreConfig
	telling sync.Mutex // makes reading the role and telling it to the keeper one step; never held across a wait
	accord  Accord     // owned by the cluster's owner goroutine
	machine *lockfsm.Machine
	leading bool
	born    bool
	bornAt  clock.Time // when it applied Born here, or restored a snapshot that holds it
}

// NewCore returns the core of a replica.
func NewCore(config CoreConfig) *Core {
	view := &View{Group: config.Group, ID: config.ID}
	view.role.Store(&raftlog.Role{})
	view.config.Store(&raftlog.Configuration{})
	if config.Step == nil {
		config.Step = func() int { return captureStep }
	}
	return &Core{View: view, Questions: NewQuestions(config.ID), config: config, machine: config.Machine}
}

// Machine returns the state, or nil as long as there is none. Restore replaces it.
func (c *Core) Machine() *lockfsm.Machine { return c.machine }

// Patient is raftlog's Patient: requests that will only wait need no entry of their own.
func (c *Core) Patient(waiting []byte, settled bool) bool {
	return c.machine != nil && c.machine.OnlyWait(waiting, settled)
}

// Role implements raftlog.Applier. What was asked of the lead before is not answered.
func (c *Core) Role(role raftlog.Role) {
	c.View.role.Store(&role)
	c.leading = role.Leading
	c.Questions.end()
	c.TellKeeper()
	c.config.Host.RoleChanged()
	c.config.Cluster.Log(c.View.ID, LogOf(role))
	c.config.Cluster.Look()
}

// TellKeeper tells the keeper the present role. It is told again when the address book has changed,
// since the leader's instance or address may not have been known before; in order, so that an older
// role never follows a newer one. It is safe for concurrent use.
func (c *Core) TellKeeper() {
	c.telling.Lock()
	defer c.telling.Unlock()
	role := c.View.Role()
	c.config.Keeper.Role(keeper.Role{
		Term: role.Term, Leading: role.Leading, Leader: target(c.View.Leader(c.config.Cluster)),
	})
}

// Configured implements raftlog.Applier.
func (c *Core) Configured(config raftlog.Configuration) {
	c.View.config.Store(&config)
	c.config.Host.Configured()
	applied := Applied(&config)
	c.config.Cluster.Configured(c.View.Group, config.Index, applied.Voters)
	c.config.Cluster.Applied(c.View.Group, applied)
}

// Confirmed implements raftlog.Applier: a majority has confirmed that this replica led when the
// round was called for, and the state holds all that was committed by then.
func (c *Core) Confirmed(term, round uint64) {
	if round&QuestionRound != 0 {
		c.Questions.see(round&^QuestionRound, c.machine)
		return
	}
	c.config.Keeper.Confirmed(term, round)
}

// Apply implements raftlog.Applier. An error says that the state machine can no longer be trusted.
func (c *Core) Apply(index, term uint64, batch []byte) error {
	trail := c.config.Trail
	if trail != nil {
		trail.Entry(index, batch)
	}
	c.machine.ApplyEntry(index, term, batch, func(result *lockfsm.Result) {
		if trail != nil {
			trail.Result(*result, c.machine)
		}
		if result.Kind == lockfsm.Adopt || result.Kind == lockfsm.Raise {
			c.charter()
		}
		if c.leading {
			c.answer(result)
		}
	})
	c.noticeBirth()
	return c.machine.Failed()
}

// answer hands a result to what waits for it.
func (c *Core) answer(result *lockfsm.Result) {
	c.Registry.Note(result)
	if result.Kind == lockfsm.Evict || result.Kind == lockfsm.Put {
		c.Questions.changed(result)
	}
	c.config.Host.Answering(result)
	c.config.Keeper.Applied(result)
}

// Leads implements raftlog.Applier: what the keeper and the look at the voters begin with is all
// there.
func (c *Core) Leads(term uint64) {
	// also those that have expired and keep a lock for its delay: they have to be ended
	sessions := c.machine.Sessions()
	c.Registry.Begin(sessions)
	c.config.Keeper.Leads(keeper.Leadership{
		Term: term, Sessions: sessions, Born: c.machine.Born(), GraceOver: c.machine.GraceOver(), BornAt: c.bornAt,
		Grace: c.machine.Charter().Grace,
	})
	c.config.Cluster.Look()
}

// Snapshot implements raftlog.Applier.
func (c *Core) Snapshot() (raftlog.Capture, error) {
	if c.config.Trail != nil {
		c.config.Trail.Mark()
	}
	return &capture{c.machine.Capture(), c.config.Step}, nil
}

// Restore implements raftlog.Applier.
func (c *Core) Restore(index, _ uint64, state []byte) error {
	machine, err := lockfsm.Restore(state)
	if err != nil {
		return err
	}
	c.machine = machine
	c.noticeBirth()
	c.charter()
	if err := machine.Failed(); err != nil {
		return err
	}
	if c.config.Trail != nil {
		c.config.Trail.Start(index, machine)
	}
	return nil
}

// TurnEnd implements raftlog.Applier: it hands over which sessions have come or gone, and tells the
// watches what has happened.
func (c *Core) TurnEnd() {
	if c.machine == nil {
		return
	}
	c.View.note(c.machine)
	c.Questions.tellWatchers(c.machine)
	if c.Registry.Publish(c.machine.Session) {
		c.config.Cluster.Look()
	}
}

// Retired implements raftlog.Applier. Instances that are attached are told at once to look for
// another leader.
func (c *Core) Retired(err error) {
	c.config.Keeper.Role(keeper.Role{Term: c.View.Role().Term + 1})
	c.config.Host.Retired(err)
}

// noticeBirth tells once that the group is born. From now on the grace is counted.
func (c *Core) noticeBirth() {
	if !c.born && c.machine.Born() {
		c.born, c.bornAt = true, c.config.Host.Born()
		c.config.Cluster.BornApplied(c.View.Group)
	}
}

// charter says what the group goes by: at the start, and when that has changed. If no settings were
// kept, they were longer than what is kept, and what this instance was told holds.
func (c *Core) charter() {
	charter := c.machine.Charter()
	c.View.rules.Store(charter.Rules)
	if settings, err := InForce(charter); err == nil {
		c.View.settings.Store(&settings)
		c.config.Cluster.Adopt(c.View.Group, settings.Founding(c.config.Solo))
	}
}

// Facts returns what the log of a leader and the sessions show of the instances that could vote,
// and its term. It has the keeper propose what all instances agree on. linked reports whether an
// instance is this one, or has a stream with it. Only the cluster's owner goroutine calls it.
func (c *Core) Facts(
	now clock.Time, own Own, s *raftlog.Survey, linked func(nodeid.ID) bool,
) (f voters.Facts, term uint64, leads bool) {
	if s.Term == 0 {
		return f, 0, false
	}
	stand := Stand{Own: own, Term: s.Term, Group: c.View.Settings(), Rules: c.View.Rules()}
	f, wishes := c.accord.Facts(now, stand, s, &c.Registry, c.config.Cluster.Voter, linked)
	c.View.remarks.Store(&f.Remarks)
	if w := wishes.Adopt; w != nil {
		c.config.Keeper.ProposeAdopt(s.Term, w.SessionTTL, wishes.Blob, w.Budgets())
	}
	if wishes.Raise != 0 {
		c.config.Keeper.ProposeRaise(s.Term, wishes.Raise)
	}
	return f, s.Term, true
}
