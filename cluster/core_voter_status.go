package cluster

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

const (
	queryEvery = 100 * time.Millisecond // pause between attempts; up to half is added at random
	queryHops  = 3                      // maximum redirects in an attempt
)

// VoterStatus is the answer of a leader to a StatusQuery.
type VoterStatus = lead.VoterStatus

// StatusQuery asks for the state of a group's voters, and whether a replica may stop.
type StatusQuery struct {
	Group    uint64
	Instance nodeid.ID
	Raft     nodeid.ReplicaID
	At       uint64 // newest configuration of the asking instance
}

// StatusReply is the answer to a StatusQuery. An instance that does not lead names the leader.
type StatusReply struct {
	VoterStatus *VoterStatus // nil if the answering instance does not lead
	Leader      nodeid.ID    // the leader and its address; zero if unknown
	Addr        string
}

// ReplyStatus answers a status query. If the last evaluation is not fresh, ReplyStatus evaluates
// the voters again, since this instance may no longer lead. fresh is a raft ID that was never used.
func (c *Core) ReplyStatus(now time.Duration, q StatusQuery, fresh uint64) (a StatusReply) {
	if q.Group != c.Founding.Group() {
		return a
	}
	if c.settled() {
		if !c.lead.Fresh(now) {
			c.observe(now, fresh)
		}
		if status, leads := c.lead.VoterStatus(q.Raft, q.At, q.Instance); leads {
			status.Leader = c.Founding.Instance()
			return StatusReply{VoterStatus: &status}
		}
	}
	if c.Founding.Phase() != founding.Member {
		return a
	}
	if instance, addr := c.cfg.OwnState.Leader(); instance != c.Founding.Instance() && instance != q.Instance {
		a.Leader, a.Addr = instance, addr
	}
	return a
}

// nextToAsk returns an instance to ask. It alternates between the known leader and a random voter,
// since the known leader may be out of date. word is a random number.
func (c *Core) nextToAsk(try int, word uint64) (instance nodeid.ID, addr string) {
	self := c.Founding.Instance()
	if c.Founding.Phase() != founding.Member || c.cfg.Founding.Settings.Solo {
		return nodeid.ID{}, ""
	}
	if instance, addr = c.cfg.OwnState.Leader(); instance == self {
		instance, addr = nodeid.ID{}, ""
	}
	others := slices.DeleteFunc(c.book.Voters(), func(v Voter) bool { return v.Learner || v.Instance == self })
	if len(others) == 0 || !instance.IsZero() && try%2 == 0 {
		return instance, addr
	}
	v := others[word%uint64(len(others))]
	return v.Instance, v.Addr
}

// Inquiry asks for the leader's VoterStatus, one question at a time, until a leader has answered or
// GiveUp is called. Caller, Own and Raft must be set before Inquire.
type Inquiry struct {
	Caller any    // opaque value for the owner
	Own    bool   // the question concerns the current replica of this instance
	Raft   uint64 // if Own is false, the replica that the question concerns

	lingers bool
	try     int
	hops    int // redirects left in this attempt
	asking  bool
	due     time.Duration // next attempt
	pause   time.Duration // between attempts
}

// Told is the answer of a leader to an inquiry.
type Told struct {
	Inquiry     *Inquiry
	VoterStatus VoterStatus
}

// Inquire begins an inquiry. The answer is returned in Acts.Told.
func (c *Core) Inquire(q *Inquiry) { c.inquiries = append(c.inquiries, q) }

// GiveUp ends an inquiry, and reports whether it was still under way.
func (c *Core) GiveUp(q *Inquiry) bool {
	at := slices.Index(c.inquiries, q)
	if at >= 0 {
		c.inquiries = slices.Delete(c.inquiries, at, at+1)
	}
	return at >= 0
}

// linger starts to ask whether a removed replica may stop (rule 13 of package voters), and ends an
// earlier such inquiry. If raft is zero, linger only ends the earlier inquiry.
func (c *Core) linger(raft uint64) {
	c.inquiries = slices.DeleteFunc(c.inquiries, func(q *Inquiry) bool { return q.lingers })
	if raft != 0 {
		c.Inquire(&Inquiry{Raft: raft, lingers: true})
	}
}

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

func (c *Core) attempt(now time.Duration, q *Inquiry, fresh, word uint64) {
	q.pause, q.hops = queryEvery+time.Duration(word%uint64(queryEvery/2)), queryHops
	q.due = now + q.pause
	if reply := c.ReplyStatus(now, c.statusQuery(q), fresh); reply.VoterStatus != nil {
		c.told(q, reply.VoterStatus)
		return
	}
	if to, addr := c.nextToAsk(q.try, word); addr != "" {
		c.queryStatus(q, to, addr)
	}
	q.try++
}

func (c *Core) statusQuery(q *Inquiry) StatusQuery {
	raft := q.Raft
	if q.Own {
		raft = c.raft
	}
	return StatusQuery{Group: c.Founding.Group(), Instance: c.Founding.Instance(), Raft: raft, At: c.book.At()}
}

func (c *Core) queryStatus(q *Inquiry, to nodeid.ID, addr string) {
	question := c.statusQuery(q)
	q.asking = true
	c.acts.Tasks = append(c.acts.Tasks, Task{To: to, Addr: addr, Query: &question, inquiry: q})
}

// StatusReplied records the answer to a status query. ok is false if no answer has arrived. A
// leader that the answer names is asked at once.
func (c *Core) StatusReplied(now time.Duration, e Task, a StatusReply, ok bool) {
	q := e.inquiry
	if e.life != c.life {
		return // it is about the replica and the group of an earlier incarnation
	}
	q.asking, q.due = false, now+q.pause
	switch {
	case !ok || !slices.Contains(c.inquiries, q): // no answer, or the inquiry has ended
	case a.VoterStatus != nil:
		c.told(q, a.VoterStatus)
	case q.hops > 0 && a.Addr != "" && !a.Leader.IsZero() && a.Leader != e.To:
		q.hops--
		c.queryStatus(q, a.Leader, a.Addr)
	}
}

func (c *Core) told(q *Inquiry, status *VoterStatus) {
	switch {
	case !q.lingers:
		c.acts.Told = append(c.acts.Told, Told{Inquiry: q, VoterStatus: *status})
	case status.MayStop:
		c.acts.Dismissed = q.Raft
	default:
		return // the inquiry asks again later
	}
	c.GiveUp(q)
}
