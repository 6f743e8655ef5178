package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// This file observes holds that end by force or by themselves, expiry delays, notices to holders,
// downgrades, holds in doubt, and handles of holds that were entered again.

const (
	// lateWord is the time within which a holder must be notified that its hold has ended by itself.
	// After a pause of its process, the time begins anew.
	lateWord = time.Second
	rounding = 10 * time.Microsecond // largest difference between two measurements of the same time
)

type holdings struct {
	forced  check.Forced
	notices check.Notices
	longest check.Longest
	delayed map[lockfsm.Token]time.Duration // expiry delay of each hold that has not ended
	// expiry delay of each hold that was ended by force and may be resumed
	handed map[lockfsm.Token]time.Duration
	// shortest expiry delay in the requests to resume a hold
	shorter map[lockfsm.Token]time.Duration
	shared  map[lockfsm.Token]bool   // exclusive holds that the state has made shared
	newest  map[string]lockfsm.Token // the last grant of each key
}

// limit returns the time until which the call's handle reports that the lock is held.
func (c *call) limit() clock.Time {
	if c.ends != 0 && c.ends.Before(c.s.deadline) {
		return c.ends
	}
	return c.s.deadline
}

func (o *watch) holding(c *call) {
	t := c.req.Terms
	if o.forced.Over(c.stateToken()) {
		c.forced = true
	}
	if t == nil {
		return
	}
	if t.Delay > 0 {
		o.delayed[c.token] = t.Delay
	}
	if t.Longest > 0 {
		ends := c.p.m.clock().Add(t.Longest)
		if c.upgrades() {
			ends = c.ends
		}
		until := c.p.m.global(ends)
		o.longest.Begins(c.caller(), until-rounding)
		// The handle ends the hold at this time, whether or not the caller is notified.
		o.w.after(until-o.w.now+rounding, func() { o.lapse(c.req.Key) })
		o.w.after(until-o.w.now+2*lateWord, func() { o.knows(c) })
	}
	if g := o.groups[c.group]; g != nil && t.Notice && !c.forced {
		for i, key := range c.keys() {
			if g.fifo.Waits(key, c.termsOf(i)) {
				o.notices.Wanted(c.caller(), o.w.now)
			}
		}
	}
}

// A call of knows checks that the holder was notified of the end of its hold. If the process was
// paused, the check waits until lateWord has passed since the pause.
func (o *watch) knows(c *call) {
	if until := c.p.m.pausedUntil; o.w.now < until+lateWord {
		o.w.after(until+lateWord-o.w.now, func() { o.knows(c) })
		return
	}
	o.w.must(o.longest.Check(c.caller(), o.w.now))
}

func (o *watch) over(c *call) {
	o.notices.Over(c.caller())
	o.longest.Over(c.caller())
}

// toldWhy observes the error by which a holder is notified that its hold has ended without its own
// Unlock.
func (o *watch) toldWhy(c *call, why error) {
	var forced *client.ForcedError
	switch {
	case errors.As(why, new(client.OverdueError)):
		o.stats.Overdue++
		o.w.must(o.longest.Overdue(c.caller(), o.w.now))
	case errors.As(why, &forced) || errors.As(why, new(*client.TakenError)):
		o.w.must(o.forced.Told(c.keys(), c.stateToken()))
	}
}

// forcedEnd observes that the state machine ends a hold by force. From now on another caller can
// get the key while the old holder believes that it holds the lock. Only the token protects the
// resource.
func (o *watch) forcedEnd(e *history.Event) {
	o.stats.Forced++
	o.w.must(o.forced.Ended(append([]string{e.Key}, e.Keys...), e.Token))
	for _, c := range o.believers[e.Key] {
		if c.stateToken() == e.Token {
			c.forced = true
			o.disbelieve(c)
			o.notices.Over(c.caller())
		}
	}
}

func (o *watch) ended(g *group, e *history.Event) {
	delay := o.delayed[e.Token]
	delete(o.delayed, e.Token)
	switch e.How {
	case history.ByForce:
		if e.Upgrades != 0 && o.forced.Ordered(e.Key, e.Upgrades) {
			o.forced.Asked(e.Key, e.Token) // the hold of the upgrade is ended by force
		}
		if delay > 0 {
			o.handed[e.Token] = delay
		}
		o.forcedEnd(e)
	case history.ByExpire:
		if delay > 0 {
			o.stats.Delayed++
			o.w.must(g.delays.Ended(e.Session, e.Key, e.Token, delay, o.w.now))
		}
	}
}

// resumed observes that a hold is resumed. The new hold has the expiry delay of the old one, unless
// a request to resume it names a shorter delay.
func (o *watch) resumed(e *history.Event) {
	o.stats.Resumed++
	if o.reserved[e.Resumes] != 0 {
		o.w.broken("the stay of %q with token %d is resumed", e.Key, e.Resumes)
	}
	if delay := o.handed[e.Resumes]; delay > 0 {
		if own := o.shorter[e.Resumes]; own > 0 { // the watch does not know which request was granted
			delay = min(delay, own)
		}
		o.delayed[e.Token] = delay
	}
	// if little of its lease is left, the client does not use this hold, but resumes it once more
	o.forced.Asked(e.Key, e.Token)
}

func (o *watch) detaches(c *call) {
	o.w.note("%v call %d detaches %v", c.p, c.id, c.keys())
	o.ends(c)
}

// arrives observes that a caller joins the queue of a key. Each holder of the key that requested a
// notice must get one, except for the hold of an upgrade.
func (o *watch) arrives(r *ownReplica, key string, terms check.Terms, upgrades lockfsm.Token) {
	for _, c := range o.believers[key] {
		if c.token != upgrades && c.wantsNotice() && !c.told && c.group == r.Group &&
			!c.termsOf(slices.Index(c.keys(), key)).Beside(terms) {
			o.notices.Wanted(c.caller(), o.w.now)
		}
	}
}

func (o *watch) wanted(c *call) {
	o.stats.Wanted++
	c.told = true
	o.w.note("%v call %d is told of a waiter", c.p, c.id)
	o.notices.Over(c.caller())
}

// renewed observes that a client has handled a renewal of its lease and everything that was sent
// together with the renewal.
func (o *watch) renewed(s *ownClient) {
	if o.w.cfg.Options == 0 {
		return
	}
	sent := s.p.m.global(s.status().Renewed)
	for _, c := range s.calls {
		if c.stage == holds && c.wantsNotice() && c.believes() {
			o.w.must(o.notices.Renewed(c.caller(), sent-rounding))
		}
	}
}

// lowers observes that a caller relies on the modes of its downgrade only from now on.
func (o *watch) lowers(c *call) {
	o.w.note("%v call %d downgrades %v", c.p, c.id, c.keys())
	o.write(c)
	c.lowered = c.readers()
	o.record(c.p, history.Event{Kind: history.Downgrade, Op: c.id})
	for i, key := range c.keys() {
		o.beliefs.Lower(key, c.caller(), c.termsOf(i))
	}
}

// lowered observes that the hold of a caller is shared in the state.
func (o *watch) lowered(c *call, err error) {
	if o.stats.Downgraded++; len(c.req.Grant().Modes) > 0 {
		o.stats.LoweredMixed++
	}
	if err != nil || !o.shared[c.token] {
		o.w.broken("%v call %d is told that token %d is shared: %v; in the state: %v", c.p, c.id, c.token, err,
			o.shared[c.token])
	}
}

// becomesShared observes that the state makes a hold shared.
func (o *watch) becomesShared(g *group, e *history.Event) {
	o.shared[e.Token] = true
	for i, key := range append([]string{e.Key}, e.Keys...) {
		o.w.must(g.fifo.Lowered(key, e.Place, termsOf(e, i)))
	}
}

func (c *call) mayDoubt() bool { return c.req.Terms != nil && c.req.Terms.Grace > 0 }

// doubts observes that a client marks a hold as in doubt, before it publishes another deadline.
func (o *watch) doubts(c *call) {
	o.stats.InDoubt++
	o.w.note("%v call %d is in doubt of %v", c.p, c.id, c.keys())
	if o.lapse(c.req.Key); !c.lapsed {
		c.lapsed, c.until = true, min(o.w.now, c.p.m.global(c.limit()))
	}
	c.doubt = true
}

// regains observes that a hold in doubt is good again. It must not overlap another belief, and the
// state must not have granted the key since.
func (o *watch) regains(c *call) {
	o.stats.Regained++
	o.w.note("%v call %d is good again with %d", c.p, c.id, c.token)
	if now := c.p.m.clock(); !c.doubt || !now.Before(c.limit()) {
		o.w.broken("%v call %d is good again at %v; in doubt: %v, until %v", c.p, c.id, now, c.doubt, c.limit())
	}
	c.doubt, c.lapsed, c.until = false, false, 0
	if c.forced {
		return // the client has not heard of it yet
	}
	for i, key := range c.keys() {
		if newest := o.newest[key]; c.termsOf(i).Alone() && newest > c.token {
			o.w.broken("%v call %d: %q is good again with token %d, and was granted with %d since", c.p, c.id, key,
				c.token, newest)
		}
		o.lapse(key)
		o.believers[key] = append(o.believers[key], c)
		o.believe(key, c, c.termsOf(i))
	}
	o.expect(c.s)
	o.write(c)
}

// notMarked checks, when a client has published a later deadline, that the hold of a call is not
// visible as held before the client has confirmed it.
func (o *watch) notMarked(c *call) {
	if c.mayDoubt() && c.lapsed && !c.doubt && c.stage == holds && c.p.m.clock().Before(c.limit()) {
		o.w.broken("%v call %d: a renewal is published, and the doubt of %v is not marked", c.p, c.id, c.keys())
	}
}

func (o *watch) grants(key string, e *history.Event) {
	if o.newest == nil {
		o.newest = map[string]lockfsm.Token{}
	}
	o.newest[key] = max(o.newest[key], e.Token)
}

// believe observes that a caller believes that it holds a key.
func (o *watch) believe(key string, c *call, terms check.Terms) {
	if c.upgrades() {
		o.w.must(o.beliefs.BeginBeside(key, c.caller(), terms, c.raises.caller(), o.w.now))
		return
	}
	o.w.must(o.beliefs.Begin(key, c.caller(), terms, o.w.now))
}

// reads returns the call as which c reads. The holder of an upgradable lock has read what its
// upgrade has written.
func (c *call) reads() *call {
	if c.raised != nil {
		return c.raised
	}
	return c
}

// remembered returns the terms with which the judge of acknowledged grants remembers a grant. For
// this judge an upgrade is like a reader, because its hold goes on.
func (c *call) remembered(i int) check.Terms {
	if c.upgrades() {
		return reader()
	}
	return c.termsOf(i)
}

// inside is the handle as a caller of its own.
func (c *call) inside() check.Caller { return check.Caller{Node: c.p.m.name + " inside", Op: c.id} }

func (o *watch) enters(c *call) {
	o.stats.Entered++
	want := c.handle.want
	o.w.note("%v call %d is entered by %+v", c.p, c.id, want)
	modes := history.Modes(want.Modes)
	e := history.Event{Kind: history.Enter, Op: c.id, Key: want.Key, Keys: want.Keys, Permits: want.Permits, Of: want.Of,
		Modes: modes}
	o.record(c.p, e)
	for i, key := range append([]string{want.Key}, want.Keys...) {
		o.lapse(key)
		o.w.must(o.beliefs.BeginBeside(key, c.inside(), termsOf(&e, i), c.caller(), o.w.now))
	}
}

// exits observes that the handle of a call ends, with its lock or before it.
func (o *watch) exits(c *call) {
	h := c.handle
	if c.handle = nil; h == nil {
		return
	}
	for _, key := range append([]string{h.want.Key}, h.want.Keys...) {
		o.w.must(o.beliefs.End(key, c.inside(), o.w.now))
	}
}

// termsOf returns the terms of the key of e with the index i.
func termsOf(e *history.Event, i int) check.Terms {
	t := check.Terms{Permits: e.Permits, Of: e.Of}
	if i < len(e.Modes) {
		t.Permits, t.Of = lockfsm.Mode(e.Modes[i] - '0').Terms()
	}
	return t
}

// untouched checks that a session does not lose its locks with another one: its own lease has
// ended, or the state has ended it, or its own program or process ends it.
func (o *watch) untouched(c *call, why client.Loss) {
	s := c.s
	switch {
	case c.stage != holds: // granted and lost in one turn
	case why == client.LossLease && s.p.m.clock().Before(s.deadline):
		o.w.broken("%v call %d: its lease goes on for %v, and the lock is lost with the lease", s, c.id, s.leaseLeft())
	case why == client.LossExpired && !o.overs[sessionOf{c.group, c.session}] && o.w.insider == nil:
		o.w.broken("%v call %d: session %d goes on in the state, and the lock is lost with it", s, c.id, c.session)
	case why == client.LossStopped:
		o.unclosed(c)
	}
}

// unclosed checks that a call does not end with a session that nothing has closed.
func (o *watch) unclosed(c *call) {
	if !c.s.closes() && !c.p.leaving {
		o.w.broken("%v call %d ends because its session is closed, and nothing has closed that session", c.s, c.id)
	}
}
