package client

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/numbered"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// Core makes all decisions of a [Client]. It has no goroutine, no clock and no random source. The
// caller passes inputs of any kind, each with the current time, and then calls Turn. It must call
// Turn again at the time that Next returns, or earlier. A Core is not safe for concurrent use.
type Core struct {
	later  later
	askTTL time.Duration
	record []byte

	phase  Phase
	askDue bool // the next frame contains Open or Attach
	finder finder

	session    lockfsm.SessionID
	epoch      lockfsm.Epoch
	number     lockfsm.Number // the number of the next request
	firstNew   lockfsm.Number // the first number that the last Attach did not cover
	graceUntil clock.Time     // the end of the group's grace; zero means that it is over or unknown
	opening    opening
	pulse      pulse

	unsent   entryList
	sent     entryList
	byNumber numbered.Table[entry] // of the sent ones
	frees    []*entry              // entries whose Release, Cancel or Detach is due
	lowering []loweredEntry        // held entries whose downgrade is not confirmed
	order    uint64
	counts   counts
	ending   ending

	limited   limited    // holds with a limited duration, or to be checked for beats
	doubtEnds clock.Time // no doubt ends earlier; used only if there are doubts

	forced  map[lockfsm.Token]forcedHold // told before ReplyAttached; nil while attached
	answers []stayAnswer                 // to be sent on this attachment
	asking  []asking                     // requests with Try that wait for the answer of a stay, or have waited

	outcomes []Outcome
	told     []Outcome // the outcomes of the last Flush
	likely   likely
	tally    tally
}

// NewCore returns a core that requests leases of length ttl. The core does nothing before Rebind.
func NewCore(now clock.Time, ttl time.Duration) *Core {
	c := &Core{askTTL: ttl, number: 1}
	c.finder = finder{wait: waitFirst, orphaned: now, silent: now, answerTimeout: c.answerTime()}
	return c
}

// Rebind implements [Client.Rebind]. The core keeps record and targets.
func (c *Core) Rebind(now clock.Time, record []byte, targets []nodeid.Endpoint) {
	c.begin(now)
	if c.ending.closed {
		return
	}
	c.forgetSession(ErrLost, SessionRestarted)
	c.opening.noteOutdated(session.Outdated{})
	c.record = record
	c.finder.rebind(targets, record != nil, c.answerTime())
	switch {
	case c.ending.closing:
		c.finishClose()
	case c.finder.bound:
		c.findLeader(now, now, nodeid.Endpoint{})
	default:
		c.findLeader(now, 0, nodeid.Endpoint{})
	}
}

// SetTargets implements [Client.SetTargets].
func (c *Core) SetTargets(now clock.Time, targets []nodeid.Endpoint) {
	c.begin(now)
	c.finder.setTargets(targets)
	if c.phase == Seeking && c.finder.bound && !c.ending.closed && c.finder.retryAt == 0 {
		c.findLeader(now, now, nodeid.Endpoint{})
	}
}

// Tick advances the time.
func (c *Core) Tick(now clock.Time) {
	c.begin(now)
	if c.ending.closed {
		return
	}
	switch c.phase {
	case Opening, Attaching:
		if by := max(c.finder.answerBy, c.finder.excusedUntil); !c.askDue && !now.Before(by) &&
			!c.excuse(now, by) {
			c.unanswered(now)
		}
	case Attached:
		c.tickAttached(now)
	}
	if c.phase == Seeking && c.finder.retryAt != 0 && !now.Before(c.finder.retryAt) {
		c.askNext(now)
	}
	if by := c.triesEnd(); by != 0 && !now.Before(by) {
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
	if c.ending.closed {
		return 0
	}
	if c.counts.held > 0 {
		consider(c.pulse.lease.deadline())
	}
	if c.counts.doubts > 0 {
		consider(c.doubtEnds)
	}
	if len(c.limited) > 0 {
		consider(c.limited[0].due())
	}
	if by := c.triesEnd(); by != 0 {
		consider(by)
	}
	if len(c.asking) > 0 {
		consider(c.asking[0].since.Add(tryWithout))
	}
	switch c.phase {
	case Seeking:
		consider(c.finder.retryAt)
	case Opening, Attaching:
		consider(max(c.finder.answerBy, c.finder.excusedUntil))
	case Attached:
		consider(c.renewAt())
		if by, ok := c.renewalBy(); ok {
			consider(by)
		}
	}
	return next
}

// Status describes the core.
func (c *Core) Status(now clock.Time) Status {
	l, n := &c.pulse.lease, &c.counts
	s := Status{
		laterStatus: c.later.status(),
		Phase:       c.phase, Session: c.session, TTL: l.ttl, Renewed: l.sent, Lease: l.state(now), Deadline: l.deadline(),
		Requests: n.waiting + n.held + n.doubts + n.freeing, Waiting: n.waiting, Held: n.held + n.doubts,
		Ended: c.tally.ended, Outdated: c.opening.outdated,
	}
	if c.phase != Seeking {
		s.Asked = c.finder.target.ID
	}
	if c.phase == Attached {
		s.Leader, s.GraceUntil = c.finder.target, c.graceUntil
	}
	return s
}
