package client

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// OutcomeKind is the kind of an outcome.
type OutcomeKind uint8

// OutcomeFailed, OutcomeLost and OutcomeReleased end the request. The other kinds do not end it.
const (
	OutcomeGranted    OutcomeKind = iota + 1 // the call holds the lock, with Token
	OutcomeFailed                            // the call holds nothing, now or later; Err is the reason
	OutcomeLost                              // a granted lock is lost; Err is the reason
	OutcomeReleased                          // the release is confirmed, or Err is why it cannot be confirmed
	OutcomeWaits                             // the call waits; Behind is the holder when its request was applied
	OutcomeWanted                            // another request waits for the held lock; may be repeated
	OutcomeAsked                             // requests with Try wait for the answer of a stay; may be repeated
	OutcomeYield                             // another request is about to wait for a stay; may be repeated
	OutcomeDowngraded                        // the hold has weaker modes, or Err is why it is as before
	OutcomeInDoubt                           // the lease of a hold with a grace has ended; the hold may be good again
	OutcomeGood                              // a hold in doubt was confirmed, with the same token
)

// Outcome is a result that a core reports for a request.
type Outcome struct {
	Kind    OutcomeKind
	Why     Loss // with OutcomeLost
	Request *Request
	Token   lockfsm.Token
	Last    lockfsm.Token    // with OutcomeGranted: the last token of a stay; zero means no stay
	Place   lockfsm.Revision // with OutcomeAsked: of the last request with Try that waits
	Until   clock.Time       // with OutcomeGranted: when the hold reaches its longest duration; zero means never
	Err     error
	Behind  *HeldError
}

// Acquire begins a request. A later Flush returns its outcome.
func (c *Core) Acquire(now clock.Time, r *Request) {
	c.begin(now)
	r.stage = stageWaiting
	c.counts.waiting++
	c.counts.keyBytes += r.bytes()
	if r.Try {
		c.counts.tries++
		if c.counts.tries == 1 {
			c.counts.triedSince = now
		}
	}
	switch {
	case c.ending.closing || c.ending.closed:
		c.fail(r, ErrClosed)
	case c.ending.leaving:
		c.fail(r, ErrLeaving)
	case !r.plain():
		c.fail(r, ErrBadKey)
	case c.counts.waiting+c.counts.freeing > maxUnfinished || c.counts.keyBytes > maxKeyBytes:
		c.fail(r, errTooMany)
	case r.Terms != nil && (r.Terms.Under.doubts() || r.Terms.Inner.doubts()):
		c.fail(r, ErrInJeopardy)
	case r.refuseUpgrade() != nil:
		c.fail(r, r.refuseUpgrade())
	case r.Try && c.finder.orphaned != 0 && now.Sub(c.finder.orphaned) >= tryWithout:
		c.fail(r, ErrNoLeader)
	default:
		c.order++
		r.mark = c.order
		r.first = entry{req: r}
		r.entry = &r.first
		c.unsent.pushBack(r.entry)
		if r.upgrades() {
			r.Terms.Under.Terms.upgrade = r
		}
	}
}

// begin ends the holds whose deadline or grace has passed. Every input calls it first, so that a
// late acknowledgement cannot extend them.
func (c *Core) begin(now clock.Time) {
	if deadline := c.pulse.lease.deadline(); c.counts.held > 0 && !now.Before(deadline) {
		c.endLimited(deadline-1, now) // these ended first; see Hold.Err
		c.loseAll()
	}
	c.endLimited(now, now)
	c.endDoubts(now)
}

// endLimited ends the holds that have reached their longest duration, or their longest time without
// a beat, at the time by, which is not after now.
func (c *Core) endLimited(by, now clock.Time) {
	for len(c.limited) > 0 && !by.Before(c.limited[0].due()) {
		r := c.limited[0]
		limit, idle := r.Terms.limit, r.Terms.idle
		ends := idle.end(by)
		switch overdue := limit != nil && !by.Before(limit.until); {
		case overdue && (ends == 0 || !ends.Before(limit.until)):
			if limit.passes() {
				c.overdue(r)
				break
			}
			c.unlimit(r) // Hold.Share has lifted it
			if r.Terms.limit = nil; idle != nil {
				heap.Push(&c.limited, r)
			}
		case ends != 0:
			c.idled(r)
		default:
			idle.check(now)
			heap.Fix(&c.limited, r.Terms.place)
		}
	}
}

// linked reports whether the Attach of the current epoch was sent, so that commands may follow it.
func (c *Core) linked() bool { return c.phase >= Attaching && !c.askDue }

// Cancel ends a request without an outcome. A grant that arrives later is released.
func (c *Core) Cancel(now clock.Time, r *Request) {
	c.begin(now)
	switch r.stage {
	case stageWaiting:
		c.leave(r)
	case stageHeld, stageDoubt:
		if hold := r.idling(); hold.idle() != nil && hold.idle().ended.Load() != 0 {
			c.idled(hold) // Hold.Err has found it
			return
		}
		c.endUpgrade(r, ErrLost, LossLease)
		c.heldNoMore(r)
	default:
		return
	}
	c.abandon(r)
}

// Release releases a lock and reports whether it was held or in doubt until now. If so,
// OutcomeReleased follows. For a hold in doubt it has no error only if the release has ended the
// hold.
func (c *Core) Release(now clock.Time, r *Request) bool {
	c.begin(now)
	if !r.stage.holds() {
		return false
	}
	c.endUpgrade(r, HoldReleasedError{}, LossUnknown)
	r.entry.doubted = r.stage == stageDoubt
	c.heldNoMore(r)
	r.stage = stageReleasing
	c.free(r.entry)
	return true
}

// Detach is like Release, except that a hold with a delay remains in the group for its delay. If
// lapsed is not empty, the group records the hold as expired, with this reason.
func (c *Core) Detach(now clock.Time, r *Request, lapsed string) bool {
	c.begin(now)
	if r.stage.holds() {
		r.entry.detaches(lapsed)
	}
	return c.Release(now, r)
}

// Downgrade gives a hold weaker modes, as in lockfsm.Downgrade. OutcomeDowngraded follows unless
// the hold ends first. It ends an upgrade of the hold. It only reads modes, later too.
func (c *Core) Downgrade(now clock.Time, r *Request, modes []lockfsm.Mode) {
	c.begin(now)
	if r.stage.holds() && !c.lowers(r.entry) {
		c.endUpgrade(r, HoldReleasedError{}, LossUnknown)
		c.lowering = append(c.lowering, loweredEntry{r.entry, modes})
	}
}

// loweredEntry is a held entry with a downgrade to these modes.
type loweredEntry struct {
	entry *entry
	modes []lockfsm.Mode
}

func (c *Core) lowers(e *entry) bool {
	return slices.ContainsFunc(c.lowering, func(l loweredEntry) bool { return l.entry == e })
}

func (c *Core) stopDowngrade(e *entry) {
	c.lowering = slices.DeleteFunc(c.lowering, func(l loweredEntry) bool { return l.entry == e })
}

func (c *Core) leave(r *Request) {
	c.counts.waiting--
	c.counts.keyBytes -= r.bytes()
	if r.Try {
		c.counts.tries--
	}
}

func (c *Core) fail(r *Request, err error) {
	c.leave(r)
	r.unlink()
	r.stage, r.entry, r.mark = stageOver, nil, 0
	c.outcomes = append(c.outcomes, Outcome{Kind: OutcomeFailed, Request: r, Err: err})
}

func (c *Core) abandon(r *Request) {
	r.unlink()
	e := r.entry
	r.stage, r.entry, e.req = stageOver, nil, nil
	if e.number == 0 {
		c.unsent.remove(e)
		return
	}
	e.stays = r.Terms != nil && r.Terms.Resume != 0 // the group may already have resumed the hold, which must not end
	c.free(e)
}

// The method free records that a numbered entry is no longer wanted. If no Attach was sent, no
// command is due, because the next Attach frees the entry.
func (c *Core) free(e *entry) {
	e.freeing = true
	c.counts.freeing++
	if c.linked() {
		e.due = true
		c.frees = append(c.frees, e)
	}
}

// drop removes an entry that has ended in the group. A caller that waits for its release gets
// err.
func (c *Core) drop(e *entry, err error) {
	c.unindex(e.number)
	c.sent.remove(e)
	c.answered(e)
	if e.freeing {
		c.counts.freeing--
		if e.due {
			c.frees = slices.DeleteFunc(c.frees, func(f *entry) bool { return f == e })
		}
	}
	if err == nil && e.doubted {
		err = ErrLost
	}
	if r := e.req; r != nil && r.stage == stageReleasing {
		r.stage, r.entry = stageOver, nil
		c.outcomes = append(c.outcomes, Outcome{Kind: OutcomeReleased, Request: r, Err: err})
	}
}

// sentAs returns the entry that was sent under the number, or nil.
func (c *Core) sentAs(n lockfsm.Number) *entry { return c.byNumber.Get(uint64(n)) }

func (c *Core) index(e *entry) { c.byNumber.Put(uint64(e.number), e) }

func (c *Core) unindex(n lockfsm.Number) { c.byNumber.Delete(uint64(n)) }

func (c *Core) answered(e *entry) {
	c.counts.asked(-int(e.open))
	e.open = 0
}

// grant reports a grant to the caller. If too little of the lease is left, grant releases the lock
// and sends the request again.
func (c *Core) grant(now clock.Time, e *entry, reply *session.Reply) {
	r, token := e.req, reply.Token
	if c.pulse.lease.short(now) {
		c.requeue(r)
		e.req = nil
		if r.Terms != nil && r.Terms.Resume != 0 {
			r.Terms.Resume, e.stays = token, true
		}
		c.free(e)
		return
	}
	c.leave(r)
	r.stage, r.mark = stageHeld, uint64(token)
	if r.Terms != nil && r.Terms.Resume != 0 {
		r.Terms.granted = reply.Grant
	}
	c.counts.held++
	if until := r.ends(now); until != 0 {
		r.Terms.limit = &limit{until: until}
	}
	if r.Terms != nil && r.Terms.Idle > 0 {
		r.Terms.idle = newIdle(now, r.Terms.Idle, r.Terms.beats)
	}
	if r.isLimited() {
		heap.Push(&c.limited, r)
	}
	c.outcomes = append(c.outcomes, Outcome{Kind: OutcomeGranted, Request: r, Token: token, Last: reply.Last,
		Until: r.limit().time()})
}

const maxHeldKeys = 10

// heldKeys returns the keys of held requests, without those that except reports.
func (c *Core) heldKeys(except func(*Request) bool) (keys []string) {
	more := 0
	for e := c.sent.head; e != nil; e = e.next {
		switch r := e.req; {
		case r == nil || !r.stage.holds() || except(r):
		case len(keys) == maxHeldKeys:
			more++
		default:
			keys = append(keys, fmt.Sprintf("%q", cmp.Or(r.Grant().Key, r.Key)))
		}
	}
	if more > 0 {
		keys = append(keys, fmt.Sprintf("and %d more", more))
	}
	return keys
}

func (c *Core) heldNoMore(r *Request) {
	if r.stage == stageDoubt {
		c.counts.doubts--
	} else {
		c.counts.held--
	}
	c.stopDowngrade(r.entry)
	r.unlink()
	c.unlimit(r)
}

// ends returns when a hold that is granted now reaches its longest duration, or zero.
func (r *Request) ends(now clock.Time) clock.Time {
	switch {
	case r.Terms == nil || r.Terms.Longest == 0:
		return 0
	case r.upgrades():
		return r.Terms.Under.limit().time()
	}
	return now.Add(r.Terms.Longest)
}

// isLimited reports whether the hold of r was put into limited.
func (r *Request) isLimited() bool { return r.limit() != nil || r.idle() != nil }

func (c *Core) unlimit(r *Request) {
	if r.isLimited() && r.Terms.place >= 0 {
		heap.Remove(&c.limited, r.Terms.place)
	}
}

// overdue ends a hold that has reached its longest duration. The lock remains taken for its delay,
// because the code under the lock may still run.
func (c *Core) overdue(r *Request) {
	c.lapse(r, OverdueError{}, LossOverdue, r.overdue())
}

// idled is like overdue, for a hold without a beat.
func (c *Core) idled(r *Request) { c.lapse(r, IdleError{}, LossIdle, r.idled()) }

func (c *Core) lapse(r *Request, err error, why Loss, reason string) {
	e := r.entry
	c.loseBy(r, err, why)
	e.req = nil
	e.detaches(reason)
	c.free(e)
}

// requeue makes a waiting request unsent again, at its old place. The caller must free or drop the
// old entry.
func (c *Core) requeue(r *Request) {
	r.entry = &entry{req: r}
	c.unsent.insert(r.entry)
}

func (c *Core) lose(r *Request, why Loss) { c.loseBy(r, ErrLost, why) }

func (c *Core) loseBy(r *Request, err error, why Loss) {
	c.endUpgrade(r, err, why)
	c.heldNoMore(r)
	r.stage, r.entry = stageOver, nil
	c.outcomes = append(c.outcomes, Outcome{Kind: OutcomeLost, Request: r, Err: err, Why: why})
}

// endUpgrade ends the upgrade of a hold that ends now, for the same reason.
func (c *Core) endUpgrade(hold *Request, err error, why Loss) {
	if hold.Terms == nil || hold.Terms.upgrade == nil {
		return
	}
	u := hold.Terms.upgrade
	if u.stage == stageWaiting {
		c.abandon(u)
		c.fail(u, err)
		return
	}
	e := u.entry
	c.loseBy(u, err, why)
	e.req = nil
	c.free(e)
}

// loseAll ends every hold at the deadline. A hold with a grace is in doubt instead.
func (c *Core) loseAll() {
	for e := c.sent.head; e != nil && c.counts.held > 0; e = e.next {
		switch r := e.req; {
		case r == nil || r.stage != stageHeld:
		case r.grace() > 0:
			c.doubt(r, c.pulse.lease.deadline())
		default:
			c.loseFree(e)
		}
	}
}

// loseFree ends the hold of e, and frees e, because the session may still exist in the group.
func (c *Core) loseFree(e *entry) {
	e.stays = e.req.outlives()
	c.lose(e.req, LossLease)
	e.req = nil
	c.free(e)
}

// Doubt puts a held request with a grace in doubt, from the time since on. It is for a shell whose
// caller has read a later clock than the core.
func (c *Core) Doubt(now clock.Time, r *Request, since clock.Time) {
	c.begin(now)
	if r.stage == stageHeld {
		c.doubt(r, since)
	}
}

func (c *Core) doubt(r *Request, since clock.Time) {
	c.counts.held--
	c.counts.doubts++
	r.stage = stageDoubt
	r.Terms.doubtEnds = since.Add(r.Terms.Grace)
	if ends := r.Terms.doubtEnds; c.counts.doubts == 1 || ends.Before(c.doubtEnds) {
		c.doubtEnds = ends
	}
	c.outcomes = append(c.outcomes, Outcome{Kind: OutcomeInDoubt, Request: r})
}

// endDoubts loses the holds whose grace is over.
func (c *Core) endDoubts(now clock.Time) {
	if c.counts.doubts == 0 || now.Before(c.doubtEnds) {
		return
	}
	c.doubtEnds = 0
	for e := c.sent.head; e != nil; e = e.next {
		r := e.req
		if r == nil || r.stage != stageDoubt {
			continue
		}
		if ends := r.Terms.doubtEnds; !now.Before(ends) {
			c.loseFree(e)
		} else if c.doubtEnds == 0 || ends.Before(c.doubtEnds) {
			c.doubtEnds = ends
		}
	}
}

// regain makes the confirmed holds in doubt good again. It runs at the end of a turn, after every
// input that could lose one of them.
func (c *Core) regain(now clock.Time) {
	if c.counts.doubts == 0 || c.phase != Attached || !now.Before(c.pulse.lease.deadline()) {
		return
	}
	for e := c.sent.head; e != nil; e = e.next {
		if r := e.req; r != nil && r.stage == stageDoubt && e.seen == c.epoch {
			c.counts.doubts--
			c.counts.held++
			r.stage = stageHeld
			c.outcomes = append(c.outcomes, Outcome{Kind: OutcomeGood, Request: r})
		}
	}
}

// counts has the sums over the entries.
type counts struct {
	open     int // bytes of unanswered commands
	waiting  int
	held     int
	doubts   int
	freeing  int
	keyBytes int
	tries    int

	triedSince clock.Time // since when there has been a request with Try; of use if tries > 0
}

// asked counts the bytes of commands that are sent, or of answered ones if it is negative.
func (n *counts) asked(bytes int) { n.open += bytes }

// unasked forgets all commands that were sent.
func (n *counts) unasked() { n.open = 0 }

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
				r.entry = &entry{req: r}
				again = append(again, r.entry)
			case stageHeld, stageDoubt:
				c.lose(r, end.loss())
			}
		}
		c.drop(e, told)
		e = next
	}
	c.askAgain(again)
	c.session = 0
	c.pulse.end()
	c.opening.end()
	c.pulse.renewals.Forget()
}

func (c *Core) askAgain(again []*entry) {
	slices.SortFunc(again, func(a, b *entry) int { return cmp.Compare(a.req.order(), b.req.order()) })
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

// dropFrees drops every Release, Cancel and Detach that is due. The next Attach frees the
// entries by not naming them, or makes their Detach due again.
func (c *Core) dropFrees() {
	for i, e := range c.frees {
		e.due, c.frees[i] = false, nil
	}
	c.frees = c.frees[:0]
}
