package cluster

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// OwnState gives a Core access to the state of its own instance. The methods must not call the
// core.
type OwnState interface {
	// Facts returns the leader's facts and term. leads is true if this instance's replica leads the
	// group and has applied an entry of its own term.
	Facts() (f voters.Facts, term uint64, leads bool)
	// Guide returns the leader to which this instance is attached or is about to attach, or zero. A
	// voter has named this leader, so the core trusts its reports about the configuration.
	Guide() nodeid.ID
	// Leader returns the known leader of the group and its address. Zero means unknown.
	Leader() (instance nodeid.ID, addr string)
}

const (
	maxAsks   = 8 // questions under way at the same time
	askWithin = time.Second
)

// Voter is a voter or a learner of the group, with the last known address of its instance.
type Voter = founding.Voter

// Asker is the instance that asks a question: its proven ID and its claimed address.
type Asker = founding.Asker

// CoreConfig configures a Core.
type CoreConfig struct {
	Founding founding.Config
	Zone     string
	Gossips  bool
	OwnState OwnState
}

// Core makes all decisions of this package for one instance. An owner passes inputs to the core and
// then calls Turn, which makes these calls:
//
//	Tick ──▶ the decisions of founding, to be stored
//	Follow ──▶ events for the host, once the decisions are stored
//	Act ──▶ steps for the log, questions, addresses to gossip with
//
// A Core is not safe for concurrent use. Its methods take times and random numbers as arguments.
type Core struct {
	// If an input concerns only founding, the owner passes it directly to Founding.
	Founding *founding.Core

	cfg       CoreConfig
	self      string
	book      founding.Book
	raft      uint64                   // ID of this incarnation's replica; zero if no replica may vote
	unfit     bool                     // the directory cannot be written
	join      []founding.Entry         // the addresses that Join leads to
	peers     map[string]gossip.Meta   // keys are memberlist's names; includes this instance
	moved     bool                     // join or peers have changed since the last call of Founding.Places
	rivals    map[string]time.Duration // when each address first seemed to belong to another group with a leader
	rival     founding.InstanceInfo    // an instance that has confirmed it is in another group; zero means none
	find      finder
	spread    spreading
	lead      lead.Lead
	wanted    bool           // the facts may have changed since the last evaluation
	life      uint64         // how often forget was called
	report    *voters.Report // report of the last evaluation; nil if this instance does not lead
	inquiries []*Inquiry
	events    []founding.Event // for Follow
	acts      Acts             // for Act
}

// NewCore returns the core of an instance that starts.
func NewCore(cfg CoreConfig) *Core {
	c := &Core{
		Founding: founding.New(cfg.Founding), cfg: cfg, self: cfg.Founding.Addr, moved: true,
		find: newFinder(cfg.Founding.Addr), peers: make(map[string]gossip.Meta), rivals: make(map[string]time.Duration),
	}
	if stored := cfg.Founding.Stored; stored != nil {
		c.book.Configure(stored.At, stored.Voters)
	}
	return c
}

// Raft returns the raft ID of this incarnation's replica, or 0 if no replica may vote.
func (c *Core) Raft() uint64 { return c.raft }

// At returns the number of the newest known configuration. Zero means none.
func (c *Core) At() uint64 { return c.book.At() }

// Voters returns a copy of the address book, by raft ID.
func (c *Core) Voters() []Voter { return c.book.Voters() }

// Voter returns the replica with the given raft ID, if the group has it.
func (c *Core) Voter(raft uint64) (Voter, bool) { return c.book.Find(raft) }

// Rival returns a member of another group if both groups have a leader. The two groups can never
// merge.
func (c *Core) Rival() (who founding.InstanceInfo, two bool) { return c.rival, c.rival.Group != 0 }

func (c *Core) settled() bool {
	return c.Founding.Phase() == founding.Member && !c.Founding.Settling() && c.Founding.Refusal() == ""
}

// Tick advances the time. The owner stores Founding.State, or calls Unsaved if that fails. It then
// passes the events to Follow, and asks the questions after Act.
func (c *Core) Tick(now time.Duration, wallUnixMS int64, random founding.Random) founding.Output {
	c.places()
	c.pull(now, random.Spread)
	return c.Founding.Tick(now, wallUnixMS, random)
}

// Unsaved records that Founding.State could not be stored, and why. It returns the part of out that
// may still be carried out.
func (c *Core) Unsaved(out founding.Output, why string) founding.Output {
	c.unfit = true
	return c.Founding.Unsaved(out, why)
}

// Follow processes the decisions of founding that the owner has stored. It returns the events for
// the host, in order. The events Joined and Heard carry the whole address book.
func (c *Core) Follow(now time.Duration, decided []founding.Event) []founding.Event {
	for _, e := range decided {
		c.follow(now, e)
	}
	if c.unfit && c.Founding.Phase() == founding.Member {
		c.raft = 0 // the replica makes no new promise
	}
	events := c.events
	c.events = nil
	return events
}

func (c *Core) follow(now time.Duration, e founding.Event) {
	switch e.Kind {
	case founding.BoundTo:
		c.raft = e.Raft
		c.configure(now, e.Group, charterAt, e.Charter.Voters)
	case founding.Joined:
		c.configure(now, e.Group, e.At, e.Voters)
		e.Voters = c.book.Voters()
	case founding.Heard:
		c.Configured(now, e.Group, e.At, e.Voters)
		return
	case founding.Prepared:
		c.raft = e.Raft
		c.linger(0)
	case founding.Removed:
		if c.raft == e.Raft {
			c.raft = 0
		}
		c.linger(e.Raft)
	case founding.Restarted, founding.Barred:
		c.forget()
	}
	c.events = append(c.events, e)
}

func (c *Core) forget() {
	c.raft, c.book, c.spread, c.lead = 0, founding.Book{}, spreading{}, lead.Lead{}
	c.acts, c.rival, c.report = Acts{}, founding.InstanceInfo{}, nil
	c.linger(0)
	c.life++ // answers to earlier tasks are ignored
	for _, q := range c.inquiries {
		q.asking, q.due = false, 0
	}
}

// Acts are the actions of a turn in addition to the events for the host. They may be carried out
// concurrently.
type Acts struct {
	Carry     []lead.Carry // steps for the log
	Tasks     []Task       // their outcomes are passed to Done or StatusReplied
	Gossip    []string     // addresses to gossip with; call Gossiped when an attempt has ended
	Told      []Told
	Dismissed uint64        // a removed replica that may stop now; zero means none
	Next      time.Duration // latest time of the next turn, unless founding needs an earlier turn
}

// Act evaluates the voters if that is due, and returns the actions to carry out. fresh is a raft ID
// that was never used. word is a random number.
func (c *Core) Act(now time.Duration, fresh, word uint64) Acts {
	next := c.govern(now, fresh)
	next = min(next, c.inquire(now, fresh, word), c.tell(now), c.pullDue(now), c.askRival(now), c.rejoin(now, word))
	acts := c.acts
	acts.Next = next
	for i := range acts.Tasks {
		acts.Tasks[i].life = c.life
	}
	c.acts = Acts{}
	return acts
}

// Ask returns the answer to another instance's question about founding. The owner must store
// Founding.State before it sends the answer. Nil means that no answer is sent.
func (c *Core) Ask(now time.Duration, wallUnixMS int64, from Asker, question []byte) []byte {
	c.Founding.Guide(c.cfg.OwnState.Guide())
	return c.Founding.Ask(now, wallUnixMS, from, question)
}

// Result records the outcome of a question of founding. asked is when the question was sent.
func (c *Core) Result(
	now, asked time.Duration, q founding.Question, outcome founding.Outcome, from nodeid.ID, answer []byte,
) {
	c.Founding.Guide(c.cfg.OwnState.Guide())
	c.Founding.Result(now, q.ID, asked, outcome, from, answer)
	if outcome != founding.Answered || !c.cfg.Gossips {
		return
	}
	if who, ok := c.Founding.Met(now, q.Addr, askWithin); ok && c.cfg.Founding.Settings.Founds(who.Name) {
		c.find.met(q.Addr, now)
	}
}

// Retired records that this instance's replica has stopped by itself. Its raft ID is never used
// again.
func (c *Core) Retired(now time.Duration, raft uint64) {
	if c.raft == raft {
		c.raft = 0
	}
	c.inquiries = slices.DeleteFunc(c.inquiries, func(q *Inquiry) bool { return q.lingers && q.Raft == raft })
	c.Founding.Retired(now, raft)
}
