package client

import (
	"bytes"
	"fmt"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file handles the replies of the leader. It ignores replies to another attachment.

// Receive handles a sequence of replies, and does not keep the bytes. Malformed bytes end the
// attachment.
func (c *Core) Receive(now clock.Time, from nodeid.ID, replies []byte) {
	c.begin(now)
	for len(replies) > 0 && !c.ending.closed {
		r, rest, err := session.NextReply(replies)
		if err != nil {
			if c.phase != Seeking && !c.askDue && from == c.finder.target.ID {
				c.backOff(now, nodeid.Endpoint{})
			}
			return
		}
		c.reply(now, from, &r)
		replies = rest
	}
}

func (c *Core) reply(now clock.Time, from nodeid.ID, r *session.Reply) {
	switch r.Kind {
	case session.ReplyOpened:
		c.opened(now, from, r)
		return
	case session.ReplyRedirect:
		c.redirected(now, from, r)
		return
	}
	if !c.linked() || from != c.finder.target.ID || r.Session != c.session || r.Epoch != c.epoch {
		return
	}
	c.pulse.heard(now)
	switch r.Kind {
	case session.ReplyAttached:
		c.attached(now, r)
	case session.ReplyState:
		c.state(now, r)
	case session.ReplyHeld:
		c.metHolder(now, r)
	case session.ReplyDeadlock:
		c.circular(r)
	case session.ReplyForbidden:
		c.forbidden(r)
	case session.ReplyEvicted:
		c.evicted(r)
	case session.ReplyTaken:
		c.readTaken(r)
	case session.ReplyWanted:
		if e := c.sentAs(r.Number); e != nil && e.req != nil && e.req.stage.holds() {
			c.outcomes = append(c.outcomes, Outcome{Kind: OutcomeWanted, Request: e.req})
		}
	case session.ReplyAsked:
		if e := c.sentAs(r.Number); e != nil && e.req != nil && e.req.stage == stageHeld {
			c.outcomes = append(c.outcomes, Outcome{Kind: OutcomeAsked, Request: e.req, Place: r.Place})
		}
	case session.ReplyYield:
		if e := c.sentAs(r.Number); e != nil && e.req != nil && e.req.stage == stageHeld {
			c.outcomes = append(c.outcomes, Outcome{Kind: OutcomeYield, Request: e.req})
		}
	case session.ReplyFreed:
		if !c.later.hears(r) {
			c.freed(now, r)
		}
	case session.ReplyUnsupported:
		c.unsupported(now, r)
	case session.ReplyRenewed:
		c.renewed(r)
	case session.ReplyEnded:
		c.ended(now, r)
	case session.ReplyBehind:
		c.readHolder(r)
	case session.ReplyGrace:
		c.graceUntil = 0
		if r.TTL > 0 {
			c.graceUntil = now.Add(r.TTL)
		}
	}
}

// opened handles the answer to Open, from any instance to which the Open was sent. The lease is
// measured from the first sending of the nonce, because the first Open may have opened the session.
func (c *Core) opened(now clock.Time, from nodeid.ID, r *session.Reply) {
	if c.session != 0 || !c.opening.answers(from, r.Nonce) {
		return
	}
	c.finder.heard(r.Term)
	c.opening.noteOutdated(r.Outdated)
	// Another instance has read this nonce in a log and has opened a session with it.
	if r.Code == lockfsm.NoSession {
		c.opening.drop()
	}
	if r.Code != lockfsm.Done || r.Session == 0 || r.TTL <= 0 {
		c.backOff(now, nodeid.Endpoint{}) // the group is full or not founded: retry with the same nonce
		return
	}
	c.session = r.Session
	c.finder.opened(r.Term)
	c.pulse.begin(min(r.TTL, c.askTTL), c.opening.succeeded())
	c.finder.allow(c.answerTime())
	c.ask(now, c.finder.find(from), true)
}

// attached handles the answer to Attach. The states of all live requests arrive before this
// answer. If the Attach named a request but no reply has contained its state, the request is
// finished.
func (c *Core) attached(now clock.Time, r *session.Reply) {
	if c.phase != Attaching {
		return
	}
	c.finder.heard(r.Term)
	switch r.Code {
	case lockfsm.Done:
	case lockfsm.NoSession, lockfsm.Stale:
		if r.Term < c.finder.provenTerm {
			// The answer is from an old leader. A leader of a later term has opened or attached
			// this session.
			c.backOff(now, nodeid.Endpoint{})
			return
		}
		// Stale means that another process, for example a copy of this process, has attached to
		// the session with a higher epoch. One of the two processes must open a new session.
		c.sessionGone(now)
		return
	default:
		c.backOff(now, nodeid.Endpoint{})
		return
	}
	c.phase = Attached
	c.finder.attached(now, r.Term)
	c.pulse.renewals.heard = c.pulse.renewals.seq // the last renewal was sent with the Attach
	if now.Sub(c.pulse.lease.sent) > c.pulse.lease.ttl/2 {
		// The leader may ignore the last renewal, because that renewal may name an answer that is
		// too old. The next renewal names the answer to this Attach.
		c.pulse.want()
	}
	var again []*entry
	for e := c.sent.head; e != nil && e.number < c.firstNew; {
		next := e.next
		switch {
		case e.freeing && (e.seldom().left == c.epoch || e.named() && e.seen != c.epoch):
			c.drop(e, nil)
		case e.freeing && e.named() && !e.due && e.open == 0: // its command was sent before this attachment
			e.due = true
			c.frees = append(c.frees, e)
		case !e.freeing && e.seen != c.epoch:
			if e.req.stage.holds() {
				c.loseUnnamed(e.req)
			} else {
				e.req.entry = &entry{req: e.req}
				again = append(again, e.req.entry)
			}
			e.req = nil
			c.drop(e, nil)
		}
		e = next
	}
	c.forced = nil
	c.askAgain(again)
}

func (c *Core) state(now clock.Time, r *session.Reply) {
	e := c.sentAs(r.Number)
	if e == nil {
		if r.Token != 0 {
			c.redirect(now, c.finder.target) // unknown grant: the next Attach does not name it and so releases it
		}
		return
	}
	e.seen = c.epoch
	if r.Code == lockfsm.Granted && r.Token != 0 {
		c.answeredAsk(e)
		c.stateGranted(now, e, r)
		return
	}
	if r.Code == lockfsm.Waiting {
		c.answeredAsk(e)
		c.triesStay(now, e.req)
		return
	}
	if r.Code == lockfsm.NoSession || r.Code == lockfsm.Stale {
		c.redirect(now, c.finder.target)
		return
	}
	err := BudgetErrorOf(r.Code, r.Budget)
	if err == nil {
		err = codeError(r.Code)
	}
	c.finish(e, err)
}

// answeredAsk counts the request of e as answered. If a command that frees e was sent,
// answeredAsk does nothing, because that command gets its own answer.
func (c *Core) answeredAsk(e *entry) {
	if !e.freeing || e.due {
		c.answered(e)
	}
}

func (c *Core) stateGranted(now clock.Time, e *entry, r *session.Reply) {
	switch {
	case e.freeing: // the grant was sent before the release arrived
	case e.req.stage == stageWaiting:
		c.grant(now, e, r)
	case e.req.token() != r.Token: // must not happen; the caller's token is no longer valid
		c.lose(e.req, LossUnknown)
		e.req = nil
		c.free(e)
	}
}

// finish ends an entry that the group reports as ended. If err is nil and the caller still waits,
// the request is sent again.
func (c *Core) finish(e *entry, err error) {
	if r := e.req; r != nil && r.stage != stageReleasing {
		switch {
		case r.stage.holds():
			c.lose(r, LossUnknown)
		case err == nil:
			c.requeue(r)
		default:
			c.fail(r, err)
		}
		e.req = nil
	}
	c.drop(e, nil)
}

func (c *Core) metHolder(now clock.Time, r *session.Reply) {
	e := c.sentAs(r.Number)
	if e == nil {
		return
	}
	var err error
	if e.req != nil {
		err = heldError(e.req.Key, r)
	}
	c.finish(e, err)
}

func (c *Core) readHolder(r *session.Reply) {
	if e := c.sentAs(r.Number); e != nil && e.req != nil && e.req.stage == stageWaiting {
		c.outcomes = append(c.outcomes, Outcome{Kind: OutcomeWaits, Request: e.req, Behind: heldError(e.req.Key, r)})
	}
}

func heldError(key string, r *session.Reply) *HeldError {
	if len(r.Key) > 0 {
		key = string(r.Key)
	}
	return &HeldError{
		Key: key, Session: r.Holder, Record: bytes.Clone(r.Record), Token: r.Token, SinceUnixMS: r.Since,
		Waiters: int(r.Waiters), Value: bytes.Clone(r.Value), Kept: r.Kept,
	}
}

func (c *Core) circular(r *session.Reply) {
	e := c.sentAs(r.Number)
	if e == nil {
		return
	}
	err := &DeadlockError{Circle: r.Circle}
	for i := range err.Circle {
		err.Circle[i].Record = bytes.Clone(err.Circle[i].Record)
	}
	c.finish(e, err)
}

func (c *Core) forbidden(r *session.Reply) {
	verb := "lock"
	if r.Code == lockfsm.NotForced {
		verb = "force"
	}
	if e := c.sentAs(r.Number); e != nil {
		c.finish(e, &session.NotAllowedError{Verb: verb, Key: string(r.Key), For: string(r.Value)})
	}
}

// evicted handles the forced end of a request. If its caller still waits, the request is sent
// again.
func (c *Core) evicted(r *session.Reply) {
	c.endedBy(r, forcedHold{&ForcedError{By: string(r.Record), Reason: string(r.Value)}, LossForced})
}

func (c *Core) readTaken(r *session.Reply) {
	c.endedBy(r, forcedHold{&TakenError{Record: bytes.Clone(r.Record)}, LossTaken})
}

const forcedKept = 256 // as many as the audit log of the group has

// forcedHold is how a hold was taken from this session.
type forcedHold struct {
	err error
	why Loss
}

func (c *Core) endedBy(r *session.Reply, by forcedHold) {
	if r.Number == 0 && c.phase == Attaching && len(c.forced) < forcedKept {
		if c.forced == nil {
			c.forced = make(map[lockfsm.Token]forcedHold)
		}
		c.forced[r.Token] = by
	}
	e := c.sentAs(r.Number)
	if e == nil {
		return
	}
	if e.req != nil && e.req.stage.holds() {
		c.loseBy(e.req, by.err, by.why)
		e.req = nil
	}
	c.finish(e, nil)
}

// loseUnnamed ends a hold that the group no longer has.
func (c *Core) loseUnnamed(r *Request) {
	if by, forced := c.forced[r.token()]; forced {
		c.loseBy(r, by.err, by.why)
		return
	}
	c.lose(r, LossUnknown)
}

func (c *Core) freed(now clock.Time, r *session.Reply) {
	e := c.sentAs(r.Number)
	if e == nil || c.answersDowngrade(now, e, r.Code) || !e.freeing {
		return
	}
	if e.stays && r.Code == lockfsm.TooManySessions {
		c.drop(e, fmt.Errorf("%w: the hold could not be detached from its session and has ended", ErrNoRoom))
		return
	}
	if err := BudgetErrorOf(r.Code, r.Budget); e.stays && err != nil {
		c.drop(e, fmt.Errorf("the hold could not be detached from its session and has ended: %w", err))
		return
	}
	if r.Code != lockfsm.Done && r.Code != lockfsm.Finished {
		c.redirect(now, c.finder.target) // the next Attach does not name the entry, which frees it
		return
	}
	e.doubted = e.doubted && r.Code != lockfsm.Done // Done proves that the hold existed until now
	c.drop(e, nil)
}

// answersDowngrade handles a code that answers a downgrade and does not end the hold. It reports
// whether the code is such an answer. The answers to the commands of a hold arrive in the order of
// the commands, so the first such answer is that of the downgrade.
func (c *Core) answersDowngrade(now clock.Time, e *entry, code lockfsm.Code) bool {
	if e.seldom().lowered != c.epoch {
		return false
	}
	var err error
	switch code {
	case lockfsm.Downgraded:
	case lockfsm.NotHeld:
		err = ErrNotHeld
	case lockfsm.Unsupported:
		err = ErrUnsupported
	default:
		switch {
		case e.freeing:
		case code == lockfsm.Finished:
			c.finish(e, nil)
		default:
			c.redirect(now, c.finder.target)
		}
		return false
	}
	e.rarely().lowered = 0
	c.answeredAsk(e)
	if c.lowers(e) {
		c.stopDowngrade(e)
		c.outcomes = append(c.outcomes, Outcome{Kind: OutcomeDowngraded, Request: e.req, Err: err})
	}
	return true
}

// unsupported handles the answer to a command that is newer than the rules of the group.
func (c *Core) unsupported(now clock.Time, r *session.Reply) {
	e := c.sentAs(r.Number)
	switch known, without := c.later.refused(r, e != nil); {
	case without:
		c.answeredAsk(e)
		c.finish(e, nil) // without the field, at the same place among the calls
		return
	case known:
		return
	}
	r.Code = lockfsm.Unsupported
	if r.Command == lockfsm.Acquire {
		c.state(now, r)
		return
	}
	c.freed(now, r)
}

func (c *Core) renewed(r *session.Reply) {
	if sent, ok := c.pulse.renewals.Acknowledged(r.Seq); ok {
		c.pulse.lease.renewed(sent)
		c.pulse.renewals.heard = r.Seq
		c.tally.answered(c.pulse.heardAt.Sub(sent))
		c.allowTwice(c.pulse.heardAt.Sub(sent))
		c.finder.answered()
	}
}

func (c *Core) ended(now clock.Time, r *session.Reply) {
	switch r.Reason {
	case session.EndNoSession:
		c.sessionGone(now)
	case session.EndOverloaded:
		c.backOff(now, c.finder.target)
	default:
		c.redirect(now, c.finder.target)
	}
}
