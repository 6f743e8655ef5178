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

// The election timeout is longer than any pause of a healthy machine, and short enough for a
// failover within two seconds. Where heartbeats come on time, a voter waits for 200 ms only, which
// is three missing heartbeats (raftlog/detector.go).
const (
	RaftTick        = 25 * time.Millisecond
	ElectionTicks   = 20
	HeartbeatTicks  = 2
	SilenceTicks    = 8
	ElectionTimeout = ElectionTicks * RaftTick
)

// Keeper is the part of the keeper that a Core calls.
type Keeper interface {
	Role(keeper.Role)
	Leads(keeper.Leadership)
	Applied(*lockfsm.Result)
	Yield(lockfsm.SessionID, lockfsm.Number)
	Confirmed(term, round uint64)
	Searched(term uint64, found lockfsm.Search)
	ProposeAdopt(term uint64, ttl time.Duration, settings []byte, budgets session.Budgets)
	ProposeRaise(term uint64, version uint32)
}

// Cluster is the part of the cluster's shell that a Core calls, and its address book.
type Cluster interface {
	Book
	Log(raft uint64, log founding.Log)
	Configured(group, at uint64, voters []founding.Voter)
	Applied(group uint64, applied founding.Configuration)
	BornApplied(group uint64)
	Adopt(group uint64, settings founding.Settings)
	Look()
}

// Host is the instance of the replica. The Host must not call the Core during a call from the Core.
type Host interface {
	RoleChanged()
	Configured()
	// Answering is called on the leader with each result, before the keeper gets the result.
	Answering(*lockfsm.Result)
	// Born is called once, when the group is founded, and returns the present time.
	Born() clock.Time
	// Retired is called when the replica has stopped by itself. No other call follows.
	Retired(error)
}

// Trail records the changes that a replica applies. history.Trail implements it.
type Trail interface {
	Mark()
	Start(index uint64, machine *lockfsm.Machine)
	Entry(index uint64, batch []byte)
	Result(result lockfsm.Result, machine *lockfsm.Machine)
}

// CoreConfig configures a Core.
type CoreConfig struct {
	Group, ID uint64
	Machine   *lockfsm.Machine // nil if the replica needs a snapshot from the leader first
	Keeper    Keeper
	Cluster   Cluster
	Host      Host
	Trail     Trail      // nil means no recording
	Step      func() int // returns the size of a snapshot step; nil means captureStep
	// Questions is where the numbers of questions begin. It is random: an earlier run of the replica
	// may have proposed commands that are applied only now, and their results must answer no question
	// of this run.
	Questions uint64
	Solo      bool             // the group has one instance, and no other may join
	Wall      func() time.Time // for texts only

	// Alter changes the entries before this replica alone applies them, for tests. Nil means no
	// change.
	Alter func(batch []byte) []byte
}

// Core applies the entries of a replica's log to the state machine and passes the results on. It
// implements raftlog.Applier. Only the goroutine that owns the log may call its methods, unless a
// method states otherwise.
type Core struct {
	View         *View
	SessionIndex SessionIndex
	Questions    *Questions
	Refused      Refused

	config CoreConfig
	// held while the role is read and passed to the keeper; never held across a wait
	telling   sync.Mutex
	agreement SettingsAgreement // owned by the cluster's owner goroutine, like differing
	differing differing
	machine   *lockfsm.Machine
	leading   bool
	born      bool
	// when this replica applied Born, or restored a snapshot of a founded group
	bornAt clock.Time
}

// NewCore returns the core of a replica.
func NewCore(config CoreConfig) *Core {
	view := &View{Group: config.Group, ID: config.ID}
	view.role.Store(&raftlog.Role{})
	view.config.Store(&raftlog.Configuration{})
	if config.Step == nil {
		config.Step = func() int { return captureStep }
	}
	return &Core{View: view, Questions: NewQuestions(config.ID, config.Questions), config: config, machine: config.Machine}
}

// Machine returns the state machine, or nil if there is none yet. Restore replaces it.
func (c *Core) Machine() *lockfsm.Machine { return c.machine }

// Deferrable implements raftlog.Deferrable. A batch of waiting requests needs no separate log
// entry.
func (c *Core) Deferrable(waiting []byte, settled bool) bool {
	return c.machine != nil && c.machine.OnlyWait(waiting, settled)
}

// Digest returns the digest of the state, or zero if there is none yet.
func (c *Core) Digest() uint64 {
	if c.machine == nil {
		return 0
	}
	return c.machine.Digest()
}

// Queued asks the owners of stays to release those that a batch in the leader's queue is about to
// wait for.
func (c *Core) Queued(batch []byte) {
	if c.machine != nil {
		c.machine.EachYield(batch, c.config.Keeper.Yield)
	}
}

// Role implements raftlog.Applier. It fails the questions of an earlier term with ErrNoLead.
func (c *Core) Role(role raftlog.Role) {
	c.View.role.Store(&role)
	c.leading = role.Leading
	c.Questions.end()
	c.TellKeeper()
	c.config.Host.RoleChanged()
	c.config.Cluster.Log(c.View.ID, LogOf(role))
	c.config.Cluster.Look()
}

// TellKeeper passes the present role to the keeper. The caller must call it again after a change of
// the address book. It is safe for concurrent use, and an older role never follows a newer one.
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

// Confirmed implements raftlog.Applier. A majority has confirmed that this replica led when the
// round was requested. The state includes all entries that were committed by then.
func (c *Core) Confirmed(term, round uint64) {
	if round&QuestionRound != 0 {
		c.Questions.answer(round&^QuestionRound, c.machine)
		return
	}
	if round&keeper.SearchRound != 0 {
		c.config.Keeper.Searched(term, c.machine.Search())
		return
	}
	c.config.Keeper.Confirmed(term, round)
}

// Apply implements raftlog.Applier. An error means that the state machine can no longer be trusted.
func (c *Core) Apply(index, term uint64, batch []byte) error {
	if alter := c.config.Alter; alter != nil {
		batch = alter(batch)
	}
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

func (c *Core) answer(result *lockfsm.Result) {
	c.SessionIndex.Note(result)
	switch result.Kind {
	case lockfsm.Evict, lockfsm.Expire, lockfsm.Put, lockfsm.SetValue, lockfsm.Reserve, lockfsm.Lead:
		c.Questions.changed(result, c.machine)
	}
	c.config.Host.Answering(result)
	c.config.Keeper.Applied(result)
}

// Leads implements raftlog.Applier. It passes the state to the keeper and to the voter reconciler.
func (c *Core) Leads(term uint64) {
	// The list includes expired sessions whose locks stay taken for a while. The keeper must end
	// these sessions too.
	sessions := c.machine.Sessions()
	c.SessionIndex.Begin(sessions)
	c.config.Keeper.Leads(keeper.Leadership{
		Group: c.config.Group, Term: term, Sessions: sessions, Born: c.machine.Born(), GraceOver: c.machine.GraceOver(),
		BornAt: c.bornAt, Grace: c.machine.Charter().Grace, Unsearched: c.machine.Unsearched(),
		Rules: c.machine.Charter().Rules,
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

// TurnEnd implements raftlog.Applier. It publishes the changed sessions, and answers watches that
// have events.
func (c *Core) TurnEnd() {
	if c.machine == nil {
		return
	}
	c.View.note(c.machine)
	c.Questions.tellWatchers(c.machine)
	if c.SessionIndex.Publish(c.machine.Session) {
		c.config.Cluster.Look()
	}
}

// Retired implements raftlog.Applier. It makes the keeper send attached instances to another leader
// at once.
func (c *Core) Retired(err error) {
	c.config.Keeper.Role(keeper.Role{Term: c.View.Role().Term + 1})
	c.config.Host.Retired(err)
}

func (c *Core) noticeBirth() {
	if !c.born && c.machine.Born() {
		c.born, c.bornAt = true, c.config.Host.Born()
		c.config.Cluster.BornApplied(c.View.Group)
	}
}

// charter publishes the settings and rules in force. If the state machine has no settings, the
// configured settings stay in force.
func (c *Core) charter() {
	charter := c.machine.Charter()
	c.View.rules.Store(charter.Rules)
	if settings, err := InForce(charter); err == nil {
		c.View.settings.Store(&settings)
		c.config.Cluster.Adopt(c.View.Group, settings.Founding(c.config.Solo))
	}
}

// Facts returns the facts about the possible voters, and the leader's term. It makes the keeper
// propose the settings and rules on which all instances agree. linked reports whether an instance
// is this instance or is connected by a stream. Only the cluster's owner goroutine may call Facts.
func (c *Core) Facts(
	now clock.Time, own Own, s *raftlog.Survey, linked func(nodeid.ID) bool,
) (f voters.Facts, term uint64, leads bool) {
	if s.Term == 0 {
		return f, 0, false
	}
	stand := Stand{Own: own, Term: s.Term, Group: c.View.Settings(), Rules: c.View.Rules()}
	f, proposals := c.agreement.Facts(now, stand, s, &c.SessionIndex, c.config.Cluster.Voter, linked)
	f.Remarks = append(f.Remarks, c.differing.sentences(c.config.Wall, s, &f)...)
	f.Remarks = append(f.Remarks, c.Refused.sentences(now)...)
	c.View.remarks.Store(&f.Remarks)
	if w := proposals.Adopt; w != nil {
		c.config.Keeper.ProposeAdopt(s.Term, w.SessionTTL, proposals.Blob, w.Budgets())
	}
	if proposals.Raise != 0 {
		c.config.Keeper.ProposeRaise(s.Term, proposals.Raise)
	}
	return f, s.Term, true
}
