package cluster

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file is how an instance asks the leader about the voters, and how it answers such questions.

const (
	consultEvery = 100 * time.Millisecond // between two attempts, plus up to half of it at random
	consultHops  = 3                      // how many redirects an attempt follows
)

// Counsel is the answer of a leader.
type Counsel = lead.Counsel

// Consultation asks for the state of a group's voters, and whether a replica may stop.
type Consultation struct {
	Group    uint64
	Instance nodeid.ID // the asking one
	Raft     uint64    // of the replica
}

// Advice is the answer to a Consultation: the leader's, or which instance leads.
type Advice struct {
	Counsel *Counsel  // nil if this instance does not lead
	Leader  nodeid.ID // the leader and its address; zero if unknown here
	Addr    string
}

// Advise answers a consultation. A leader looks again if its last look is not fresh, since it may
// have lost its lead. fresh is a raft ID that was never used.
func (c *Core) Advise(now time.Duration, q Consultation, fresh uint64) (a Advice) {
	if q.Group != c.Founding.Group() {
		return a
	}
	if c.settled() {
		if !c.lead.Fresh(now) {
			c.observe(now, fresh)
		}
		if counsel, leads := c.lead.Counsel(q.Raft, q.Instance); leads {
			counsel.Leader = c.Founding.Instance()
			return Advice{Counsel: &counsel}
		}
	}
	if c.Founding.Phase() != founding.Member {
		return a
	}
	if instance, addr := c.cfg.Sight.Leader(); instance != c.Founding.Instance() && instance != q.Instance {
		a.Leader, a.Addr = instance, addr
	}
	return a
}

// whom returns an instance to ask: by turns the leader as far as is known here, and a random voter,
// since the former may be out of date. word is random.
func (c *Core) whom(try int, word uint64) (instance nodeid.ID, addr string) {
	self := c.Founding.Instance()
	if c.Founding.Phase() != founding.Member || c.cfg.Founding.Settings.Solo {
		return nodeid.ID{}, ""
	}
	if instance, addr = c.cfg.Sight.Leader(); instance == self {
		instance, addr = nodeid.ID{}, ""
	}
	others := slices.DeleteFunc(c.book.Voters(), func(v Voter) bool { return v.Learner || v.Instance == self })
	if len(others) == 0 || !instance.IsZero() && try%2 == 0 {
		return instance, addr
	}
	v := others[word%uint64(len(others))]
	return v.Instance, v.Addr
}

// Inquiry asks the leader about the voters, one question at a time, until it has answered or the
// inquiry is given up. Its fields must be set before Inquire.
type Inquiry struct {
	Caller any    // opaque, for the owner
	Own    bool   // about the present replica of this instance
	Raft   uint64 // otherwise about this one

	lingers bool // the core's own: whether a removed replica may stop
	try     int
	hops    int // redirects left in this attempt
	asking  bool
	due     time.Duration // the next attempt
	pause   time.Duration // until the next attempt
}

// Told is the answer of a leader to an inquiry.
type Told struct {
	Inquiry *Inquiry
	Counsel Counsel
}

// Inquire begins an inquiry. The answer is one of Acts.Told.
func (c *Core) Inquire(q *Inquiry) { c.inquiries = append(c.inquiries, q) }

// GiveUp ends an inquiry, and reports whether it was still under way.
func (c *Core) GiveUp(q *Inquiry) bool {
	at := slices.Index(c.inquiries, q)
	if at >= 0 {
		c.inquiries = slices.Delete(c.inquiries, at, at+1)
	}
	return at >= 0
}

// linger starts to ask whether a removed replica may stop. Zero ends that. A voter that has not
// learned that the previous configuration is over may still need its vote (rule 13 of package
// voters).
func (c *Core) linger(raft uint64) {
	c.inquiries = slices.DeleteFunc(c.inquiries, func(q *Inquiry) bool { return q.lingers })
	if raft != 0 {
		c.Inquire(&Inquiry{Raft: raft, lingers: true})
	}
}

// inquire makes the attempts that are due, and returns when the next one is.
func (c *Core) inquire(now time.Duration, fresh, word uint64) time.Duration {
	next := now + idle
	for _, q := range slices.Clone(c.inquiries) {
		if !q.asking && q.due <= now {
			c.attempt(now, q, fresh, word)
		}
		if !q.asking && slices.Contains(c.inquiries, q) {
			next = min(next, q.due)
		}
	}
	return next
}

// attempt asks this instance itself, and then another one.
func (c *Core) attempt(now time.Duration, q *Inquiry, fresh, word uint64) {
	q.pause, q.hops = consultEvery+time.Duration(word%uint64(consultEvery/2)), consultHops
	q.due = now + q.pause
	if advice := c.Advise(now, c.consultation(q), fresh); advice.Counsel != nil {
		c.told(q, advice.Counsel)
		return
	}
	if to, addr := c.whom(q.try, word); addr != "" {
		c.consult(q, to, addr)
	}
	q.try++
}

func (c *Core) consultation(q *Inquiry) Consultation {
	raft := q.Raft
	if q.Own {
		raft = c.raft
	}
	return Consultation{Group: c.Founding.Group(), Instance: c.Founding.Instance(), Raft: raft}
}

func (c *Core) consult(q *Inquiry, to nodeid.ID, addr string) {
	question := c.consultation(q)
	q.asking = true
	c.acts.Errands = append(c.acts.Errands, Errand{To: to, Addr: addr, Consult: &question, inquiry: q})
}

// Advised records the answer to a consultation; ok is false if there is none. If an instance that
// does not lead names the leader, that one is asked at once.
func (c *Core) Advised(now time.Duration, e Errand, a Advice, ok bool) {
	q := e.inquiry
	q.asking, q.due = false, now+q.pause
	switch {
	case !ok || !slices.Contains(c.inquiries, q): // it may have been given up
	case a.Counsel != nil:
		c.told(q, a.Counsel)
	case q.hops > 0 && a.Addr != "" && !a.Leader.IsZero() && a.Leader != e.To:
		q.hops--
		c.consult(q, a.Leader, a.Addr)
	}
}

// told processes the answer of a leader.
func (c *Core) told(q *Inquiry, counsel *Counsel) {
	switch {
	case !q.lingers:
		c.acts.Told = append(c.acts.Told, Told{Inquiry: q, Counsel: *counsel})
	case counsel.MayStop:
		c.acts.Dismissed = q.Raft
	default:
		return // it asks again
	}
	c.GiveUp(q)
}
