package client

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// Bounds of a client, see "Limits" in the package comment.
const (
	maxUnfinished  = 65_536
	maxKeyBytes    = 8 << 20   // of all waiting calls together
	frameBytes     = 256 << 10 // of commands in one frame
	windowBytes    = 1 << 20   // of commands that were sent and are not answered
	requestBytes   = 64        // a command beside its key, generously
	tryWithout     = 2 * time.Second
	answerTime     = 500 * time.Millisecond
	answerTTLParts = 6
	waitFirst      = 50 * time.Millisecond
	waitLongest    = 200 * time.Millisecond
	settled        = 200 * time.Millisecond // an attachment that lasted this long was a good one
	movesAtOnce    = 3
	outcomesKept   = 1024 // room for so many is used again: a burst should not cost its memory for ever
)

// Core decides everything that a [Client] does. It is a plain value in memory: no goroutine, no
// clock, no random source. Feed it inputs, each with the time, in any order; then call Turn, and
// come back at the latest at Next. It is not safe for concurrent use. The simulation uses it
// without the shell.
type Core struct {
	askTTL  time.Duration
	record  []byte
	bound   bool
	targets []session.Target
	cursor  int

	phase      Phase
	target     session.Target
	askDue     bool // the question to target, Open or Attach, leaves with the next frame
	pipeline   bool // target is believed to lead: requests travel right behind Attach
	retryAt    clock.Time
	aim        session.Target // whom to ask at retryAt; zero: the next in turn
	answerBy   clock.Time
	patience   time.Duration
	wait       time.Duration
	moves      int        // changes of target without a wait
	since      clock.Time // when this attachment was confirmed
	orphaned   clock.Time // since when there is no leader; zero while attached
	term       uint64     // the highest that anybody named
	provenTerm uint64     // of the leader whose log opened or attached this session last
	graceUntil clock.Time // when the grace ends, as the leader has said; zero: it is over, or nothing was said

	session   lockfsm.SessionID
	epoch     lockfsm.Epoch
	number    lockfsm.Number // the next one to give
	firstNew  lockfsm.Number // the first number that the last Attach did not cover
	nonce     lockfsm.Nonce
	nonceSent clock.Time     // first sending; zero: not yet
	nonceTo   []session.Peer // to which it was sent: only these can answer
	proof     lockfsm.Nonce  // that of the present session: it shows that the session is ours
	spare     lockfsm.Nonce
	lease     lease
	renewals  renewals
	renewedAt clock.Time // when the last renewal was sent
	// when the leader was last heard, or the first of the commands that it has not answered was
	// sent
	heardAt  clock.Time
	renewDue bool

	unsent   entryList
	sent     entryList
	byNumber map[lockfsm.Number]*entry
	frees    []*entry // their commands are due
	open     int      // bytes of unanswered commands
	order    uint64
	waiting  int
	held     int
	freeing  int
	keyBytes int
	tries    int

	leaving      bool
	leavingEpoch lockfsm.Epoch
	closing      bool
	closeEpoch   lockfsm.Epoch
	closed       bool

	limited limited // held, and to end by themselves

	outcomes []Outcome
	told     []Outcome // of the last Flush
	likely   int       // bytes of commands in a frame that has any
	tally    tally
}

// NewCore returns the core of a client that asks for leases of the given length. It does nothing
// before Rebind.
func NewCore(now clock.Time, ttl time.Duration) *Core {
	c := &Core{askTTL: ttl, number: 1, wait: waitFirst, orphaned: now, byNumber: make(map[lockfsm.Number]*entry)}
	c.patience = c.answerTime()
	return c
}

// Rebind begins a new life of the instance: every hold is lost, the session is forgotten, waiting
// calls will be asked anew under a session that is opened with the given record. With a nil record
// the old life only ends: nothing is asked until the next Rebind. The core keeps record and
// targets.
func (c *Core) Rebind(now clock.Time, record []byte, targets []session.Target) {
	c.begin(now)
	if c.closed {
		return
	}
	c.forgetSession(ErrLost, SessionRestarted)
	c.record, c.targets, c.cursor, c.bound = record, targets, 0, record != nil
	c.term, c.provenTerm, c.moves, c.wait = 0, 0, 0, waitFirst
	c.patience = c.answerTime()
	switch {
	case c.closing:
		c.finishClose()
	case c.bound:
		c.seek(now, now, session.Target{})
	default:
		c.seek(now, 0, session.Target{})
	}
}

// SetTargets replaces the voters to ask. The core keeps the slice.
func (c *Core) SetTargets(now clock.Time, targets []session.Target) {
	c.begin(now)
	c.targets, c.cursor = targets, 0
	if c.phase == Seeking && c.bound && !c.closed && c.retryAt == 0 {
		c.seek(now, now, session.Target{})
	}
}

// WantsNonce reports whether the core needs a fresh nonce. The shell gives it one before the next
// Flush.
func (c *Core) WantsNonce() bool { return c.spare == lockfsm.Nonce{} }

// GiveNonce hands over 16 random bytes, to be used for the next session.
func (c *Core) GiveNonce(n lockfsm.Nonce) { c.spare = n }

// Tick lets time pass.
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
}

// begin comes first in every input: holds whose deadline has passed are lost before anything else
// can be read as good news, so a renewal that is acknowledged too late revives nothing.
func (c *Core) begin(now clock.Time) {
	if c.held > 0 && !now.Before(c.lease.deadline()) {
		c.loseAll()
	}
	for len(c.limited) > 0 && !now.Before(c.limited[0].until) {
		c.overdue(c.limited[0])
	}
}

// Next returns when Tick must be called at the latest, zero for never.
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
	if len(c.limited) > 0 {
		consider(c.limited[0].until)
	}
	if c.tries > 0 && c.orphaned != 0 {
		consider(c.orphaned.Add(tryWithout))
	}
	switch c.phase {
	case Seeking:
		consider(c.retryAt)
	case Opening, Attaching:
		consider(c.answerBy)
	case Attached:
		consider(c.renewAt())
		if oldest, ok := c.renewals.Oldest(); ok {
			consider(oldest.Add(c.patience))
		}
	}
	return next
}

// Status describes the core.
func (c *Core) Status(now clock.Time) Status {
	s := Status{
		Phase: c.phase, Session: c.session, TTL: c.lease.ttl, Renewed: c.lease.sent, Lease: c.lease.state(now),
		Deadline: c.lease.deadline(),
		Requests: c.waiting + c.held + c.freeing, Waiting: c.waiting, Held: c.held, Ended: c.tally.ended,
	}
	if c.phase != Seeking {
		s.Asked = c.target.Peer
	}
	if c.phase == Attached {
		s.Leader, s.GraceUntil = c.target, c.graceUntil
	}
	return s
}

// answerTime is how long an unproven target is waited for.
func (c *Core) answerTime() time.Duration { return min(answerTime, c.ttl()/answerTTLParts) }

// ttl is the TTL granted, or while there is none the TTL to ask for.
func (c *Core) ttl() time.Duration {
	if c.lease.ttl != 0 {
		return c.lease.ttl
	}
	return c.askTTL
}
