package replica

import (
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session/keeper"
)

// Host is who a Core speaks to: the keeper of the sessions, the cluster room and the observers of one
// instance. Its methods are called in the middle of the Core's and must not call it.
type Host interface {
	// Applying is told of an entry before any command of it.
	Applying(index uint64, batch []byte)
	// Applied is told of each result before anyone acts on it, on every replica.
	Applied(result *lockfsm.Result)
	// Answer hands a result to those who wait for it. Only a replica that leads is asked to.
	Answer(result *lockfsm.Result)
	// Confirmed tells the keeper that a round of its own is done.
	Confirmed(term, round uint64)
	// Leads hands the beginning of a lead to the keeper.
	Leads(keeper.Leadership)
	// Born says, once, that the group is born, and returns the time.
	Born() clock.Time
	// Charter says what the group goes by: at the start, and when that has changed. settings is nil if
	// none were kept: they were longer than what is kept, and what this instance was told holds.
	Charter(rules uint32, settings *Settings)
	// Look calls for a look at the voters.
	Look()
}

// Core is what a replica makes of what its log hands out: it feeds the state machine and says who is
// to hear of what. The goroutine that owns the log owns it, and alone calls it.
type Core struct {
	host      Host
	registry  *Registry
	questions *Questions
	machine   *lockfsm.Machine // nil until a replica that joins has its first snapshot
	leading   bool
	born      bool
	bornAt    clock.Time // when it applied Born here, or restored a snapshot that holds it
}

// NewCore returns the core of a replica. machine is nil if the leader is to send the first snapshot.
func NewCore(host Host, registry *Registry, questions *Questions, machine *lockfsm.Machine) *Core {
	return &Core{host: host, registry: registry, questions: questions, machine: machine}
}

// Machine returns the state, or nil as long as there is none. Restore replaces it.
func (c *Core) Machine() *lockfsm.Machine { return c.machine }

// Patient is raftlog's Patient: requests that will only wait need no entry of their own.
func (c *Core) Patient(waiting []byte, settled bool) bool {
	return c.machine != nil && c.machine.OnlyWait(waiting, settled)
}

// Role takes the replica's part in a term. What was asked of the lead before is not answered.
func (c *Core) Role(role raftlog.Role) {
	c.leading = role.Leading
	c.questions.end()
}

// Confirmed takes that a round is done: a majority has confirmed that this replica led when it was
// called for, and the state holds all that was committed by then.
func (c *Core) Confirmed(term, round uint64) {
	if round&QuestionRound != 0 {
		c.questions.see(round&^QuestionRound, c.machine)
		return
	}
	c.host.Confirmed(term, round)
}

// Apply applies one entry. An error says that the state machine can no longer be trusted.
func (c *Core) Apply(index, term uint64, batch []byte) error {
	c.host.Applying(index, batch)
	c.machine.ApplyEntry(index, term, batch, func(result *lockfsm.Result) {
		c.host.Applied(result)
		if result.Kind == lockfsm.Adopt || result.Kind == lockfsm.Raise {
			c.charter()
		}
		if c.leading {
			c.registry.Note(result)
			if result.Kind == lockfsm.Evict || result.Kind == lockfsm.Put {
				c.questions.changed(result)
			}
			c.host.Answer(result)
		}
	})
	c.noticeBirth()
	return c.machine.Failed()
}

// Leads says that the first entry of the own term is applied: what the keeper and the look at the
// voters begin with is all there.
func (c *Core) Leads(term uint64) {
	sessions := c.machine.Sessions() // also those that have expired and keep a lock for its delay: they have to be ended
	c.registry.Begin(sessions)
	c.host.Leads(keeper.Leadership{
		Term: term, Sessions: sessions, Born: c.machine.Born(), GraceOver: c.machine.GraceOver(), BornAt: c.bornAt,
		Grace: c.machine.Charter().Grace,
	})
	c.host.Look()
}

// Restore takes a snapshot in place of the state.
func (c *Core) Restore(state []byte) error {
	machine, err := lockfsm.Restore(state)
	if err != nil {
		return err
	}
	c.machine = machine
	c.noticeBirth()
	c.charter()
	return machine.Failed()
}

// TurnEnd hands over who has come or gone, and tells those who watch what has happened.
func (c *Core) TurnEnd() {
	if c.machine == nil {
		return
	}
	c.questions.tellWatchers(c.machine)
	if c.registry.Publish(c.machine.Session) {
		c.host.Look()
	}
}

// noticeBirth tells once that the group is born. From now on the grace is counted.
func (c *Core) noticeBirth() {
	if !c.born && c.machine.Born() {
		c.born, c.bornAt = true, c.host.Born()
	}
}

func (c *Core) charter() {
	charter := c.machine.Charter()
	if settings, err := InForce(charter); err == nil {
		c.host.Charter(charter.Rules, &settings)
	} else {
		c.host.Charter(charter.Rules, nil)
	}
}
