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

// Sight is what a Core sees of its own instance. Its methods are called in the middle of the
// core's, and only read: they must not call it.
type Sight interface {
	// Facts returns what the replica here sees if it leads the group and its first own entry is
	// applied, and its term.
	Facts() (f voters.Facts, term uint64, leads bool)
	// Guide returns the leader to which this instance is attached or is about to be, whose word
	// about the configuration counts: a voter has named it. Zero means none.
	Guide() nodeid.ID
	// Leader returns which instance leads the group as far as is known here, and where it is. Zero
	// means unknown.
	Leader() (instance nodeid.ID, addr string)
}

const (
	asksMax   = 8 // questions under way at a time
	askWithin = time.Second
)

// Voter is one replica of the group, a voter or a learner, with the address under which its newest
// life was last known.
type Voter = founding.Voter

// Asker is the instance that puts a question: the ID that it has proved, and the address that it
// says it is reached at.
type Asker = founding.Asker

// CoreConfig is what a Core knows of its instance.
type CoreConfig struct {
	Founding founding.Config
	Zone     string
	Gossips  bool // it is a founder
	Sight    Sight
}

// Core is what one instance decides as a part of the cluster: it puts the cores of founding and of
// lead together with the address book, and decides what is told to which instance. An owner feeds
// it with all that has happened, and then calls Turn, which takes three steps:
//
//	Tick ──▶ what founding has decided, to be stored
//	Follow ──▶ what to tell the host, once that is stored
//	Act ──▶ steps for the log, questions, addresses to gossip with
//
// It is not safe for concurrent use. Times are arguments; so are random words.
type Core struct {
	// Founding is the part of birth. Inputs that concern nothing else go straight to it.
	Founding *founding.Core

	cfg       CoreConfig
	self      string // the address of this instance
	book      founding.Book
	raft      uint64                   // of this life; 0: no replica that counts
	unfit     bool                     // the directory cannot be written
	join      []founding.Entry         // what Join leads to
	peers     map[string]gossip.Meta   // by memberlist's name: what gossip sees, this instance among it
	moved     bool                     // join or peers must be told to Founding anew
	rivals    map[string]time.Duration // addresses that hint at another group with a leader, and since when
	rival     founding.Who             // a member of such a group that has said so itself; zero: none
	find      finder
	spread    spreading
	lead      lead.Lead
	wanted    bool             // the facts may have changed since the last look
	report    *voters.Report   // of the last look; nil: this instance does not lead
	inquiries []*Inquiry       // under way
	events    []founding.Event // not yet handed out
	acts      Acts             // not yet handed out
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

// Raft returns the raft ID of the replica that this life counts on, or 0.
func (c *Core) Raft() uint64 { return c.raft }

// At returns the number of the newest configuration that is known; 0 means none.
func (c *Core) At() uint64 { return c.book.At() }

// Voters returns a copy of the address book, by raft ID.
func (c *Core) Voters() []Voter { return c.book.Voters() }

// Voter returns the replica with that raft ID, if the group has it.
func (c *Core) Voter(raft uint64) (Voter, bool) { return c.book.Find(raft) }

// Rival returns a member of another group that has a leader, while this one's has one too. There
// is no way to merge the two.
func (c *Core) Rival() (who founding.Who, two bool) { return c.rival, c.rival.Group != 0 }

// settled reports whether this instance takes part in a group that is born.
func (c *Core) settled() bool {
	return c.Founding.Phase() == founding.Member && !c.Founding.Settling() && c.Founding.Refusal() == ""
}

// Tick lets time pass. What it returns counts once Founding.State is stored; if that fails, the
// output is what Unsaved leaves of it. Follow comes next.
func (c *Core) Tick(now time.Duration, wallUnixMS int64, random founding.Random) founding.Output {
	c.places()
	c.pull(now, random.Spread)
	return c.Founding.Tick(now, wallUnixMS, random)
}

// Unsaved takes that Founding.State could not be stored, and why, and returns what may be carried
// out of the output that was waiting for it.
func (c *Core) Unsaved(out founding.Output, why string) founding.Output {
	c.unfit = true
	return c.Founding.Unsaved(out, why)
}

// Follow takes what founding has decided and the owner has stored, and returns what to tell the
// host, in this order. Of it Joined and Heard name the whole address book: at Heard it has
// changed.
func (c *Core) Follow(now time.Duration, decided []founding.Event) []founding.Event {
	for _, e := range decided {
		c.follow(now, e)
	}
	if c.unfit && c.Founding.Phase() == founding.Member {
		c.raft = 0 // it promises nothing any more
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

// forget ends what the core knows of its group, at the end of a life.
func (c *Core) forget() {
	c.raft, c.book, c.spread, c.lead = 0, founding.Book{}, spreading{}, lead.Lead{}
	c.acts, c.rival, c.report = Acts{}, founding.Who{}, nil
	c.linger(0)
	for _, q := range c.inquiries {
		q.asking, q.due = false, 0 // what comes of a question of an earlier life is not heard
	}
}

// Acts are what a turn wants done beside what the host is told. All may be done side by side.
type Acts struct {
	Carry     []lead.Carry  // steps for the log
	Errands   []Errand      // questions, whose outcomes go to Done
	Gossip    []string      // addresses to gossip with, whose outcomes go to Gossiped
	Told      []Told        // answers to inquiries
	Dismissed uint64        // the replica that was removed may stop; zero: none
	Next      time.Duration // when the next turn is due at the latest, beside that of founding
}

// Act looks at the voters if it is time to, and returns what is to be done. It is the last step of
// a turn. fresh is a raft ID that was never used, and word is random.
func (c *Core) Act(now time.Duration, fresh, word uint64) Acts {
	next := c.govern(now, fresh)
	next = min(next, c.inquire(now, fresh, word), c.tell(now), c.pullDue(now), c.seekRival(now), c.rejoin(now, word))
	acts := c.acts
	acts.Next = next
	c.acts = Acts{}
	return acts
}

// Ask answers a question of birth. The answer may be sent once Founding.State is stored; nil means
// silence.
func (c *Core) Ask(now time.Duration, wallUnixMS int64, from Asker, question []byte) []byte {
	c.Founding.Guide(c.cfg.Sight.Guide())
	return c.Founding.Ask(now, wallUnixMS, from, question)
}

// Result takes what became of a question of birth that was put at the time asked.
func (c *Core) Result(
	now, asked time.Duration, q founding.Question, outcome founding.Outcome, from nodeid.ID, answer []byte,
) {
	c.Founding.Guide(c.cfg.Sight.Guide())
	c.Founding.Result(now, q.ID, asked, outcome, from, answer)
	if outcome != founding.Answered || !c.cfg.Gossips {
		return
	}
	if who, ok := c.Founding.Met(now, q.Addr, askWithin); ok && c.cfg.Founding.Settings.Founds(who.Name) {
		c.find.met(q.Addr, now)
	}
}

// Retired takes that the replica here has stopped by itself. Its raft ID is never used again.
func (c *Core) Retired(now time.Duration, raft uint64) {
	if c.raft == raft {
		c.raft = 0
	}
	c.inquiries = slices.DeleteFunc(c.inquiries, func(q *Inquiry) bool { return q.lingers && q.Raft == raft })
	c.Founding.Retired(now, raft)
}
