package client

import (
	"cmp"
	"slices"
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
	waitFirst      = 50 * time.Millisecond
	waitLongest    = 200 * time.Millisecond
	settled        = 200 * time.Millisecond // an attachment that lasts this long resets the backoff
	movesAtOnce    = 3
)

// findLeader leaves the current target. The parameter at is the time at which the core asks
// another target. The parameter aim is that target, or zero for the next one in the list. If at
// is zero, the core asks no target.
func (c *Core) findLeader(now, at clock.Time, aim nodeid.Endpoint) {
	if c.phase == Attached {
		c.orphaned = now
		c.tally.unanswered += c.renewals.Count()
	}
	c.phase, c.retryAt, c.hint = Seeking, at, aim
	c.askDue, c.renewDue = false, false
	c.graceUntil = 0
	c.renewals.Forget()
	c.dropFrees()
}

// dropFrees drops every Release, Cancel and Detach that is due. The next Attach frees the
// entries by not naming them, or makes their Detach due again.
func (c *Core) dropFrees() {
	for i, e := range c.frees {
		e.due, c.frees[i] = false, nil
	}
	c.frees = c.frees[:0]
}

// redirect asks another target immediately, or after a wait if the target has changed too often,
// for example because two voters name each other as the leader.
func (c *Core) redirect(now clock.Time, aim nodeid.Endpoint) {
	c.resetBackoff(now)
	c.moves++
	if c.moves > movesAtOnce+len(c.targets) {
		c.backOff(now, aim)
		return
	}
	c.findLeader(now, now, aim)
}

func (c *Core) backOff(now clock.Time, aim nodeid.Endpoint) {
	c.resetBackoff(now)
	wait := c.wait
	c.wait, c.moves = min(2*wait, waitLongest), 0
	c.findLeader(now, now.Add(wait), aim)
}

func (c *Core) resetBackoff(now clock.Time) {
	if c.phase == Attached && now.Sub(c.since) >= settled {
		c.wait, c.moves = waitFirst, 0
	}
}

func (c *Core) askNext(now clock.Time) {
	to, believed := c.hint, true
	if to.ID.IsZero() {
		if len(c.targets) == 0 {
			c.retryAt = 0 // wait for SetTargets
			return
		}
		to, believed = c.nextTarget(), false
	}
	c.ask(now, to, believed)
}

func (c *Core) nextTarget() nodeid.Endpoint {
	to := c.targets[c.cursor%len(c.targets)]
	c.cursor++
	if to.ID == c.target.ID && len(c.targets) > 1 {
		to = c.targets[c.cursor%len(c.targets)]
		c.cursor++
	}
	return to
}

// ask makes the next frame contain Open or Attach for a target. believed means that the target
// was named as the leader. Requests to such a target follow Attach immediately, and it has more
// time to answer.
func (c *Core) ask(now clock.Time, to nodeid.Endpoint, believed bool) {
	if c.session == 0 && c.nonce == (lockfsm.Nonce{}) {
		if c.WantsNonce() {
			return // retryAt remains set until the shell gives a nonce
		}
		c.nonce, c.nonceSent, c.nonceTo, c.spare = c.spare, 0, nil, lockfsm.Nonce{}
	}
	c.target, c.pipeline, c.askDue = to, believed, true
	c.retryAt, c.hint = 0, nodeid.Endpoint{}
	c.phase = Attaching
	if c.session == 0 {
		c.phase = Opening
	}
	wait := c.answerTime()
	if believed {
		wait = c.answerTimeout
	}
	c.answerBy = now.Add(wait)
}

// unanswered leaves a target that has not answered. If the client was attached to the target, or
// the target was named as the leader, the client allows more time for later answers.
func (c *Core) unanswered(now clock.Time) {
	if c.pipeline || c.phase == Attached {
		c.answerTimeout = min(2*c.answerTimeout, renewEvery(c.ttl()))
	}
	c.redirect(now, nodeid.Endpoint{})
}

func (c *Core) tickAttached(now clock.Time) {
	if oldest, ok := c.renewals.Oldest(); ok && now.Sub(oldest) >= c.answerTimeout {
		c.unanswered(now)
		return
	}
	if now.Before(c.renewAt()) {
		return
	}
	if c.deaf(now) {
		c.redirect(now, c.target)
		return
	}
	c.renewDue = true
}

// renewAt returns the time of the next renewal. Renewals also detect a silent leader, so they
// are sent more often while calls wait, and soon after an unanswered command.
func (c *Core) renewAt() clock.Time {
	every := renewEvery(c.lease.ttl)
	if c.waiting > 0 {
		every = min(every, renewWaiting)
	}
	at := c.renewedAt.Add(every)
	if _, flying := c.renewals.Oldest(); !flying && c.open > 0 {
		at = min(at, max(c.renewedAt, c.heardAt).Add(c.answerTimeout))
	}
	return at
}

// deaf reports whether a command was not answered although renewals were answered. The frame was
// lost, and a new attachment repairs the loss.
func (c *Core) deaf(now clock.Time) bool {
	for e := c.sent.head; e != nil; e = e.next {
		if e.open > 0 && now.Sub(e.asked) >= renewEvery(c.lease.ttl) {
			return true
		}
	}
	return false
}

// Down implements [Client.Down].
func (c *Core) Down(now clock.Time, peer nodeid.ID) {
	c.begin(now)
	if c.phase != Seeking && !c.askDue && peer == c.target.ID {
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
	if c.closed || r.Term > maxTerm {
		return
	}
	mine := c.phase != Seeking && !c.askDue && from == c.target.ID
	if !mine && !slices.ContainsFunc(c.targets, func(t nodeid.Endpoint) bool { return t.ID == from }) {
		return // another member could pose as the leader and acknowledge the lease
	}
	known := !r.Leader.IsZero() && r.Term >= c.term
	c.term = max(c.term, r.Term)
	leader := nodeid.Endpoint{ID: r.Leader, Addr: string(r.Addr)}
	switch {
	case c.phase == Attached && r.Term == c.provenTerm && leader.ID == c.target.ID:
		// A new leader informs all clients that asked before it was ready. This client has already
		// attached to that leader.
	case mine && known:
		c.redirect(now, leader)
	case mine:
		c.backOff(now, nodeid.Endpoint{})
	case !known || !c.bound:
	case c.phase == Attached && r.Term <= c.provenTerm:
	case (c.phase == Opening || c.phase == Attaching) && c.target.ID == leader.ID:
	default:
		c.redirect(now, leader)
	}
}

// sessionGone opens a new session after the session has ended in the group.
func (c *Core) sessionGone(now clock.Time) {
	leader := c.target
	if c.closing {
		c.forgetSession(nil, SessionClosed)
		c.finishClose()
		return
	}
	c.forgetSession(nil, SessionExpired)
	c.redirect(now, leader)
}

// forgetSession ends all entries of the session. Unconfirmed releases end with the error in the
// parameter releasing. If that is nil, the release of a lock with a delay ends with ErrLost,
// because the lock may still be taken.
func (c *Core) forgetSession(releasing error, end SessionEnd) {
	if c.session != 0 {
		c.tally.ended = end
	}
	c.dropFrees()
	var again []*entry
	for e := c.sent.head; e != nil; {
		next, told := e.next, releasing
		if r := e.req; r != nil {
			if told == nil && r.outlives() && !e.stays {
				told = ErrLost
			}
			switch r.stage {
			case stageWaiting:
				r.entry = &entry{req: r, order: r.order}
				again = append(again, r.entry)
			case stageHeld, stageDoubt:
				c.lose(r, end.loss())
			}
		}
		c.drop(e, told)
		e = next
	}
	c.askAgain(again)
	c.session, c.proof, c.lease, c.nonce, c.nonceSent = 0, lockfsm.Nonce{}, lease{}, lockfsm.Nonce{}, 0
	c.renewals.Forget()
}

func (c *Core) askAgain(again []*entry) {
	slices.SortFunc(again, func(a, b *entry) int { return cmp.Compare(a.order, b.order) })
	c.unsent.merge(again)
}

func (c *Core) failWaiting(onlyTries bool, err error) {
	for _, l := range [...]*entryList{&c.sent, &c.unsent} {
		for e := l.head; e != nil; {
			next := e.next
			if r := e.req; r != nil && r.stage == stageWaiting && (r.Try || !onlyTries) {
				c.abandon(r)
				c.fail(r, err)
			}
			e = next
		}
	}
}

// CloseSession closes the session as soon as the client is attached. Then Closed reports true.
// CloseSession fails with ErrStillHeld while a lock is held or in doubt. Waiting and later calls
// end with ErrClosed.
func (c *Core) CloseSession(now clock.Time) error {
	c.begin(now)
	if c.closed || c.closing {
		return nil
	}
	if c.held+c.doubts > 0 {
		return ErrStillHeld
	}
	c.closing = true
	c.failWaiting(false, ErrClosed)
	if c.session == 0 && c.nonceSent == 0 {
		c.finishClose()
	}
	return nil
}

// Stop ends every request: waiting calls and unconfirmed releases end with ErrClosed, and held
// locks are lost. A stopped core sends and accepts nothing.
func (c *Core) Stop() {
	c.forgetSession(ErrClosed, SessionStopped)
	c.failWaiting(false, ErrClosed)
	c.finishClose()
}

// Closed reports whether the core was closed. A closed core sends nothing.
func (c *Core) Closed() bool { return c.closed }

func (c *Core) finishClose() {
	c.closed, c.phase, c.retryAt, c.askDue = true, Seeking, 0, false
}

// Leaving implements [Client.Leaving]. Waiting and later calls fail with ErrLeaving. Otherwise a
// lock that is granted now would remain taken after the instance has left.
func (c *Core) Leaving(now clock.Time) {
	c.begin(now)
	if !c.leaving {
		c.leaving = true
		c.failWaiting(false, ErrLeaving)
	}
}

// WantsNonce reports whether the core needs a fresh nonce before the next Flush.
func (c *Core) WantsNonce() bool { return c.spare == lockfsm.Nonce{} }

// GiveNonce sets the nonce for the next session.
func (c *Core) GiveNonce(n lockfsm.Nonce) { c.spare = n }

func (c *Core) answerTime() time.Duration { return min(answerTime, c.ttl()/answerTTLParts) }

// ttl returns the granted TTL, or the requested TTL if none is granted.
func (c *Core) ttl() time.Duration {
	if c.lease.ttl != 0 {
		return c.lease.ttl
	}
	return c.askTTL
}
