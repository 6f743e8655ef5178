package client

import (
	"cmp"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file finds the leader: it decides which target the client asks, and when.

const (
	answerTime     = 500 * time.Millisecond
	answerTTLParts = 6
)

// findLeader leaves the current target. The parameter at is the time at which the core asks
// another target. The parameter aim is that target, or zero for the next one in the list. If at
// is zero, the core asks no target.
func (c *Core) findLeader(now, at clock.Time, aim nodeid.Endpoint) {
	if c.phase == Attached {
		c.finder.left(now, cmp.Or(c.silentSince(), now))
		c.tally.unanswered += c.pulse.renewals.Count()
	}
	c.phase = Seeking
	c.finder.seek(at, aim)
	c.askDue = false
	c.pulse.unwant()
	c.graceUntil = 0
	c.pulse.renewals.Forget()
	c.dropFrees()
}

// redirect asks another target immediately, or after a wait if the target has changed too often,
// for example because two voters name each other as the leader.
func (c *Core) redirect(now clock.Time, aim nodeid.Endpoint) {
	c.resetBackoff(now)
	if !c.finder.moved() {
		c.backOff(now, aim)
		return
	}
	c.findLeader(now, now, aim)
}

func (c *Core) backOff(now clock.Time, aim nodeid.Endpoint) {
	c.resetBackoff(now)
	c.findLeader(now, now.Add(c.finder.nextWait()), aim)
}

func (c *Core) resetBackoff(now clock.Time) {
	if c.phase == Attached {
		c.finder.resetBackoff(now)
	}
}

func (c *Core) askNext(now clock.Time) {
	to, believed := c.finder.hint, true
	if to.ID.IsZero() {
		if len(c.finder.targets) == 0 {
			c.finder.rest() // wait for SetTargets
			return
		}
		to, believed = c.finder.nextTarget(), false
	}
	c.ask(now, to, believed)
}

// ask makes the next frame contain Open or Attach for a target. believed means that the target
// was named as the leader. Requests to such a target follow Attach immediately, and it has more
// time to answer.
func (c *Core) ask(now clock.Time, to nodeid.Endpoint, believed bool) {
	if c.session == 0 && c.opening.nonce == (lockfsm.Nonce{}) {
		if c.WantsNonce() {
			return // retryAt remains set until the shell gives a nonce
		}
		c.opening.begin()
	}
	c.askDue, c.phase = true, Attaching
	if c.session == 0 {
		c.phase = Opening
	}
	wait := c.answerTime()
	if believed {
		wait = c.patience(now)
	}
	c.finder.asks(to, believed, now.Add(wait))
}

// unanswered leaves a target that has not answered, and allows a leader more time for later
// answers. Each Attach is work for the leader, so many clients that repeat it too soon would keep a
// busy leader busy.
func (c *Core) unanswered(now clock.Time) {
	c.finder.allow(min(2*c.finder.answerTimeout, renewEvery(c.ttl())))
	c.redirect(now, nodeid.Endpoint{})
}

// allowTwice allows a leader that has answered after some time twice that time for later answers.
func (c *Core) allowTwice(took time.Duration) {
	c.finder.allow(max(c.answerTime(), min(2*took, renewEvery(c.ttl()))))
}

func (c *Core) tickAttached(now clock.Time) {
	if by, ok := c.renewalBy(); ok && !now.Before(by) {
		if !c.excuse(now, by) {
			c.unanswered(now)
		}
		return
	}
	if now.Before(c.renewAt()) {
		return
	}
	if c.deaf(now) {
		c.redirect(now, c.finder.target)
		return
	}
	c.pulse.want()
}

// renewalBy returns the end of the time for the answer to the oldest renewal in flight.
func (c *Core) renewalBy() (by clock.Time, ok bool) {
	oldest, ok := c.pulse.renewals.Oldest()
	return max(oldest.Add(c.patience(oldest)), c.finder.excusedUntil), ok
}

// patience returns the time that a leader asked at the time asked has to answer. It is at most half
// of the rest of the lease, so that the client can ask others before its locks are lost.
func (c *Core) patience(asked clock.Time) time.Duration {
	left := c.pulse.lease.left(asked)
	if left <= 0 {
		return c.finder.answerTimeout
	}
	return min(c.finder.answerTimeout, max(left/2, c.answerTime()))
}

// excuse reports whether a client that is itself late allows its target more time. It does not
// while its lease is in jeopardy, because another target may be the leader.
func (c *Core) excuse(now, by clock.Time) bool {
	latest := now.Add(c.finder.answerTimeout)
	switch c.pulse.lease.state(now) {
	case Jeopardy:
		return false
	case Safe:
		latest = min(latest, c.pulse.lease.jeopardyAt())
	}
	return c.finder.excuse(now, by, latest)
}

// renewAt returns the time of the next renewal. Renewals also detect a silent leader, so they
// are sent more often while calls wait, and soon after an unanswered command.
func (c *Core) renewAt() clock.Time {
	every := renewEvery(c.pulse.lease.ttl)
	if c.counts.waiting > 0 {
		every = min(every, renewWaiting)
	}
	at := c.pulse.renewedAt.Add(every)
	if _, flying := c.pulse.renewals.Oldest(); !flying && c.counts.open > 0 {
		at = min(at, max(c.pulse.renewedAt, c.pulse.heardAt).Add(c.finder.answerTimeout))
	}
	return at
}

// deaf reports whether a command was not answered although renewals were answered. The frame was
// lost, and a new attachment repairs the loss.
func (c *Core) deaf(now clock.Time) bool {
	for e := c.sent.head; e != nil; e = e.next {
		if e.open > 0 && now.Sub(e.asked) >= renewEvery(c.pulse.lease.ttl) {
			return true
		}
	}
	return false
}

// Down implements [Client.Down].
func (c *Core) Down(now clock.Time, peer nodeid.ID) {
	c.begin(now)
	if c.phase != Seeking && !c.askDue && peer == c.finder.target.ID {
		c.finder.cutOff()
		c.redirect(now, nodeid.Endpoint{})
	}
}

// SendFailed reports that the last frame of Flush was not sent.
func (c *Core) SendFailed(now clock.Time) {
	c.begin(now)
	if c.phase != Seeking {
		c.redirect(now, nodeid.Endpoint{})
	}
}

// maxTerm is higher than every term that a group reaches. Redirects with a higher term are ignored,
// because they would make every real leader look old.
const maxTerm = 1 << 56

// redirected handles a voter's redirect. A redirect may answer Open or Attach, end the
// attachment, or name a new leader to a client that asked before.
func (c *Core) redirected(now clock.Time, from nodeid.ID, r *session.Reply) {
	if c.ending.closed || r.Term > maxTerm {
		return
	}
	mine := c.phase != Seeking && !c.askDue && from == c.finder.target.ID
	if !mine && !c.finder.isTarget(from) {
		return // another member could pose as the leader and acknowledge the lease
	}
	known := !r.Leader.IsZero() && r.Term >= c.finder.term
	c.finder.heard(r.Term)
	leader := nodeid.Endpoint{ID: r.Leader, Addr: string(r.Addr)}
	switch {
	case c.phase == Attached && r.Term == c.finder.provenTerm && leader.ID == c.finder.target.ID:
		// A new leader informs all clients that asked before it was ready. This client has already
		// attached to that leader.
	case mine && known && !c.finder.isCutOff(r.Leader, r.Term):
		c.redirect(now, leader)
	case mine:
		c.backOff(now, nodeid.Endpoint{})
	case !known || !c.finder.bound:
	case c.phase == Attached && r.Term <= c.finder.provenTerm:
	case (c.phase == Opening || c.phase == Attaching) && c.finder.target.ID == leader.ID:
	default:
		c.redirect(now, leader)
	}
}

// sessionGone opens a new session after the session has ended in the group.
func (c *Core) sessionGone(now clock.Time) {
	leader := c.finder.target
	if c.ending.closing {
		c.forgetSession(nil, SessionClosed)
		c.finishClose()
		return
	}
	c.forgetSession(nil, SessionExpired)
	c.redirect(now, leader)
}

func (c *Core) answerTime() time.Duration { return min(answerTime, c.ttl()/answerTTLParts) }

// ttl returns the granted TTL, or the requested TTL if none is granted.
func (c *Core) ttl() time.Duration {
	if c.pulse.lease.ttl != 0 {
		return c.pulse.lease.ttl
	}
	return c.askTTL
}
