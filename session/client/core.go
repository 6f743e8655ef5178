package client

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// Core makes all decisions of a [Client]. It has no goroutine, no clock and no random source. The
// caller passes inputs of any kind, each with the current time, and then calls Turn. It must call
// Turn again at the time that Next returns, or earlier. A Core is not safe for concurrent use.
type Core struct {
	later   later
	askTTL  time.Duration
	record  []byte
	bound   bool
	targets []nodeid.Endpoint
	cursor  int

	phase         Phase
	target        nodeid.Endpoint
	askDue        bool // the next frame contains Open or Attach
	pipeline      bool // target was named as the leader, so requests follow Attach immediately
	retryAt       clock.Time
	hint          nodeid.Endpoint // the target to ask at retryAt; zero means the next target in targets
	answerBy      clock.Time
	answerTimeout time.Duration
	wait          time.Duration
	moves         int        // how often the target has changed without a wait
	since         clock.Time // when this attachment was confirmed
	orphaned      clock.Time // when the client lost its leader; zero while attached
	term          uint64     // the highest term that a voter has reported
	provenTerm    uint64     // the term of the leader that last opened or attached this session
	graceUntil    clock.Time // the end of the group's grace; zero means that it is over or unknown

	session   lockfsm.SessionID
	epoch     lockfsm.Epoch
	number    lockfsm.Number // the number of the next request
	firstNew  lockfsm.Number // the first number that the last Attach did not cover
	nonce     lockfsm.Nonce
	nonceSent clock.Time // when the nonce was first sent; zero means never
	outdated  session.Outdated
	nonceTo   []nodeid.ID   // the instances that got the nonce; answers of others are ignored
	proof     lockfsm.Nonce // the nonce of the current session
	spare     lockfsm.Nonce
	lease     lease
	renewals  renewals
	renewedAt clock.Time
	// when the leader's last reply arrived or the first unanswered command was sent, whichever is
	// later
	heardAt  clock.Time
	renewDue bool

	unsent   entryList
	sent     entryList
	byNumber map[lockfsm.Number]*entry
	frees    []*entry       // entries whose Release, Cancel or Detach is due
	lowering []loweredEntry // held entries whose downgrade is not confirmed
	open     int            // bytes of unanswered commands
	order    uint64
	waiting  int
	held     int
	doubts   int
	freeing  int
	keyBytes int
	tries    int

	leaving      bool
	leavingEpoch lockfsm.Epoch
	closing      bool
	closeEpoch   lockfsm.Epoch
	closed       bool

	limited   limited    // holds with a limited duration
	doubtEnds clock.Time // no doubt ends earlier; used only if there are doubts

	forced  map[lockfsm.Token]forcedHold // told before ReplyAttached; nil while attached
	answers []stayAnswer                 // to be sent on this attachment
	asking  []*Request                   // requests with Try that wait for the answer of a stay, or have waited

	outcomes []Outcome
	told     []Outcome // the outcomes of the last Flush
	likely   int       // the predicted size of the commands in a frame
	tally    tally
}

// NewCore returns a core that requests leases of length ttl. The core does nothing before Rebind.
func NewCore(now clock.Time, ttl time.Duration) *Core {
	c := &Core{askTTL: ttl, number: 1, wait: waitFirst, orphaned: now, byNumber: make(map[lockfsm.Number]*entry)}
	c.answerTimeout = c.answerTime()
	return c
}

// Rebind implements [Client.Rebind]. The core keeps record and targets.
func (c *Core) Rebind(now clock.Time, record []byte, targets []nodeid.Endpoint) {
	c.begin(now)
	if c.closed {
		return
	}
	c.forgetSession(ErrLost, SessionRestarted)
	c.outdated = session.Outdated{}
	c.record, c.targets, c.cursor, c.bound = record, targets, 0, record != nil
	c.term, c.provenTerm, c.moves, c.wait = 0, 0, 0, waitFirst
	c.answerTimeout = c.answerTime()
	switch {
	case c.closing:
		c.finishClose()
	case c.bound:
		c.findLeader(now, now, nodeid.Endpoint{})
	default:
		c.findLeader(now, 0, nodeid.Endpoint{})
	}
}

// SetTargets implements [Client.SetTargets].
func (c *Core) SetTargets(now clock.Time, targets []nodeid.Endpoint) {
	c.begin(now)
	c.targets, c.cursor = targets, 0
	if c.phase == Seeking && c.bound && !c.closed && c.retryAt == 0 {
		c.findLeader(now, now, nodeid.Endpoint{})
	}
}

// Tick advances the time.
func (c *Core) Tick(now clock.Time) {
	c.begin(now)
	if c.closed {
		return
	}
	switch c.phase {
	case Opening, Attaching:
		if !c.askDue && !now.Before(c.answerBy) {
			c.unanswered(now)
		}
	case Attached:
		c.tickAttached(now)
	}
	if c.phase == Seeking && c.retryAt != 0 && !now.Before(c.retryAt) {
		c.askNext(now)
	}
	if c.tries > 0 && c.orphaned != 0 && now.Sub(c.orphaned) >= tryWithout {
		c.failWaiting(true, ErrNoLeader)
	}
	c.endTries(now)
	c.regain(now)
}

// Next returns the latest time for the next call of Tick. Zero means never.
func (c *Core) Next() clock.Time {
	var next clock.Time
	consider := func(t clock.Time) {
		if t != 0 && (next == 0 || t.Before(next)) {
			next = t
		}
	}
	if c.closed {
		return 0
	}
	if c.held > 0 {
		consider(c.lease.deadline())
	}
	if c.doubts > 0 {
		consider(c.doubtEnds)
	}
	if len(c.limited) > 0 {
		consider(c.limited[0].limit.until)
	}
	if c.tries > 0 && c.orphaned != 0 {
		consider(c.orphaned.Add(tryWithout))
	}
	if len(c.asking) > 0 {
		consider(c.asking[0].asked.Add(tryWithout))
	}
	switch c.phase {
	case Seeking:
		consider(c.retryAt)
	case Opening, Attaching:
		consider(c.answerBy)
	case Attached:
		consider(c.renewAt())
		if oldest, ok := c.renewals.Oldest(); ok {
			consider(oldest.Add(c.answerTimeout))
		}
	}
	return next
}

// Status describes the core.
func (c *Core) Status(now clock.Time) Status {
	s := Status{
		laterStatus: c.later.status(),
		Phase:       c.phase, Session: c.session, TTL: c.lease.ttl, Renewed: c.lease.sent, Lease: c.lease.state(now),
		Deadline: c.lease.deadline(),
		Requests: c.waiting + c.held + c.doubts + c.freeing, Waiting: c.waiting, Held: c.held + c.doubts,
		Ended: c.tally.ended, Outdated: c.outdated,
	}
	if c.phase != Seeking {
		s.Asked = c.target.ID
	}
	if c.phase == Attached {
		s.Leader, s.GraceUntil = c.target, c.graceUntil
	}
	return s
}
