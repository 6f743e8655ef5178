package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// callWatch observes calls and what their callers believe: also holds that end by force or by
// themselves, expiry delays, notices to holders, downgrades, holds in doubt, and handles of holds
// that were entered again.
type callWatch struct {
	*sight
	steps *leaseWatch
	stays *stayWatch

	believed check.Tokens // the tokens of exclusive holders, in the order in which they got them
	beliefs  check.Beliefs
	register check.Register
	served   check.Served
	// for each key, the calls whose caller believes that it holds the lock
	believers map[string][]*call
	forced    check.Forced
	notices   check.Notices
	longest   check.Longest
	delayed   map[lockfsm.Token]time.Duration // expiry delay of each hold that has not ended
	// expiry delay of each hold that was ended by force and may be resumed
	handed map[lockfsm.Token]time.Duration
	// shortest expiry delay in the requests to resume a hold
	shorter map[lockfsm.Token]time.Duration
	shared  map[lockfsm.Token]bool   // exclusive holds that the state has made shared
	newest  map[string]lockfsm.Token // the last grant of each key
}

func newCallWatch(seen *sight, steps *leaseWatch, stays *stayWatch) callWatch {
	o := callWatch{sight: seen, steps: steps, stays: stays, believers: map[string][]*call{}}
	o.served.Bound = servedWithin + 4*seen.w.cfg.TTL + seen.w.cfg.silence()
	if seen.w.cfg.Options > 0 {
		o.served.Bound += longestDelay * seen.w.cfg.TTL
	}
	o.longest.Late, o.delayed = lateWord, map[lockfsm.Token]time.Duration{}
	o.handed, o.shorter = map[lockfsm.Token]time.Duration{}, map[lockfsm.Token]time.Duration{}
	o.shared = map[lockfsm.Token]bool{}
	return o
}

func (o *callWatch) meets(terms check.Terms, there []*call) {
	switch {
	case len(there) == 0:
	case terms.Alone() && !there[0].termsOf(0).Alone():
		o.w.stats.Behind++
	case terms.Of > 0:
		o.w.stats.Crowded++
	}
}

func (o *callWatch) countGrant(c *call, keys []string, terms check.Terms) {
	s := &o.w.stats
	s.Granted++
	switch {
	case terms.Of > 0:
		s.Permits++
	case terms.Permits > 0:
		s.Shared++
	}
	if len(keys) > 1 {
		s.Several++
	}
	if c.outer != nil {
		s.Nested++
	}
	if c.tier == tiers {
		s.Jobs++
	}
}

func (o *callWatch) asks(c *call) {
	o.w.stats.Calls++
	keys, terms, modes := c.keys(), c.terms(), ""
	if c.modal() {
		modes = history.Modes(c.req.Terms.Modes)
	}
	switch {
	case len(c.parts) > 0:
		o.w.stats.MixedModes++
	case c.modal() && !c.upgradable():
		o.w.stats.Paths++
	}
	o.w.note("%v call %d asks for %v%s", c.p, c.id, keys, c.differs(terms, modes))
	o.record(c.p, history.Event{
		Kind: history.Call, Op: c.id, Key: keys[0], Keys: keys[1:], Permits: terms.Permits, Of: terms.Of,
		Modes: modes, Try: c.req.Try, Resumes: c.resumes(), Upgrades: c.upgraded(),
	})
	o.served.Waits(keys, c.caller(), c.req.Try, o.w.now)
	o.meets(c.termsOf(0), o.believers[keys[0]])
}

// refused observes that a call is refused as a deadlock. Only a call under the lock of another call
// can cause a deadlock.
func (o *callWatch) refused(c *call, err *client.DeadlockError) {
	o.w.stats.Deadlocks++
	o.w.note("%v call %d: %v", c.p, c.id, err)
	if c.outer == nil || len(err.Circle) == 0 {
		o.w.broken("%v call %d is refused, and is under no lock: %v", c.p, c.id, err)
	}
	if c.tier > 0 {
		o.w.broken("%v call %d is limit %d of a job, and is refused: %v", c.p, c.id, c.tier, err)
	}
}

func (o *callWatch) fails(c *call, why string, held lockfsm.Token) {
	o.w.stats.Failed++
	if why == "context" {
		o.w.stats.Cancelled++
	}
	o.w.note("%v call %d fails: %s", c.p, c.id, why)
	e := history.Event{Kind: history.Return, Op: c.id, Outcome: history.Failed, Err: why}
	if why == client.ErrQueueFull.Error() {
		o.w.stats.Full++
	}
	if why == "held" {
		e.Outcome, e.Token, e.Err = history.Held, held, ""
	}
	o.record(c.p, e)
	o.w.must(o.served.Answered(c.caller(), false, o.w.now))
}

func (o *callWatch) gets(c *call) {
	keys := c.keys()
	if c.resumes() != 0 && (len(keys) > 1 || !c.termsOf(0).Alone()) {
		o.w.stats.Mixed++
	}
	o.countGrant(c, keys, c.termsOf(0))
	o.w.note("%v call %d holds %v with %d", c.p, c.id, keys, c.token)
	o.w.mark('g', c.id, uint64(c.token))
	o.record(c.p, history.Event{Kind: history.Return, Op: c.id, Outcome: history.Granted, Token: c.token})
	o.w.must(o.served.Answered(c.caller(), true, o.w.now))
	for i, key := range keys {
		if g := o.groups[c.group]; g != nil && !c.kept {
			g.acks.Granted(g.front, key, c.remembered(i), c.token)
		}
		o.lapse(key)
	}
	if c.kept {
		o.stays.pass(c)
	}
	if c.upgrades() {
		c.raises.raised = c
		if o.w.stats.Upgraded++; c.outer != c.raises {
			o.w.stats.UpgradedInside++
		}
	}
	o.holding(c)
	switch {
	case c.forced: // the state machine has already ended the hold by force
	case c.believes():
		if !c.kept {
			o.steps.holdStep(c, check.Believes)
		}
		for i, key := range keys {
			o.believers[key] = append(o.believers[key], c)
			o.believe(key, c, c.termsOf(i))
			if c.termsOf(i).Alone() {
				o.w.must(o.believed.Grant(key, c.token))
			}
		}
		o.expect(c.s)
	default:
		c.own.lapsed, c.own.until = true, o.w.now
	}
	o.write(c)
}

// lapse ends the beliefs of all callers whose hold of a key has ended by their own clock.
func (o *callWatch) lapse(key string) {
	for _, c := range o.believers[key] {
		if !c.believes() {
			c.own.lapsed, c.own.until = true, min(o.w.now, c.p.m.global(c.limit()))
			o.disbelieve(c)
		}
	}
}

// extended observes that a client publishes a new deadline. A lock that has ended by the caller's
// clock must not be held again.
func (o *callWatch) extended(s *lease) {
	for _, c := range s.calls {
		if c.own.lapsed && c.believes() {
			o.w.broken("%v call %d: the lock %v with token %d was lost by the clock and came back", s, c.id, c.keys(),
				c.token)
		}
		if c.believes() && !c.kept {
			o.steps.holdStep(c, check.Believes)
		}
		o.notMarked(c)
	}
	o.expect(s)
}

// expect schedules a check for the deadline of a session. If the deadline has not changed by
// then, its callers no longer believe that they hold locks.
func (o *callWatch) expect(s *lease) {
	deadline, at := s.deadline, s.p.m.global(s.deadline)+time.Microsecond
	if s.expected == deadline || at <= o.w.now || s.status().Held == 0 {
		return
	}
	s.expected = deadline
	o.w.after(at-o.w.now, func() {
		if s.deadline != deadline {
			return
		}
		for _, c := range s.calls {
			if c.stage == holds {
				o.lapse(c.req.Key) // this also covers the other keys of the call c
			}
		}
	})
}

// write writes to a resource that compares tokens. The holder of a shared lock or of permits only
// reads.
func (o *callWatch) write(c *call) {
	for i, key := range c.keys() {
		believes := o.beliefs.Believes(key, c.caller())
		if !c.termsOf(i).Alone() {
			o.w.must(o.register.Read(key, c.reads().caller(), c.reads().token, believes))
			continue
		}
		_, err := o.register.Write(key, c.caller(), c.token, believes)
		o.w.must(err)
	}
}

func (o *callWatch) freed(c *call) {
	for _, key := range c.keys() {
		o.served.Freed(key, c.caller(), o.w.now)
	}
}

func (o *callWatch) frees(c *call) {
	o.w.note("%v call %d unlocks %v", c.p, c.id, c.keys())
	if c.kept && c.stay.asked != 0 && !c.stay.recalled {
		o.w.stats.Crossed++
	}
	o.lapse(c.req.Key)
	o.write(c)
	if c.own.lapsed { // the caller has already lost the lock
		o.record(c.p, history.Event{Kind: history.Lost, Op: c.id, Until: int64(c.own.until)})
	}
	o.record(c.p, history.Event{Kind: history.Unlock, Op: c.id})
	o.forgets(c)
}

func (o *callWatch) forgets(c *call) {
	if !c.kept {
		o.steps.holdStep(c, check.Forgets)
	}
	o.over(c)
	o.disbelieve(c)
	o.freed(c)
}

func (o *callWatch) ends(c *call) {
	o.lapse(c.req.Key)
	until := o.w.now
	if c.own.lapsed {
		until = c.own.until
	}
	o.write(c)
	o.record(c.p, history.Event{Kind: history.Lost, Op: c.id, Until: int64(until)})
	o.forgets(c)
}

func (o *callWatch) loses(c *call, why error) {
	o.w.stats.Lost++
	o.w.note("%v call %d has lost %v: %v", c.p, c.id, c.keys(), why)
	o.toldWhy(c, why)
	o.ends(c)
}

func (o *callWatch) released(c *call, err error) {
	e := history.Event{Kind: history.Unlocked, Op: c.id}
	if err != nil {
		e.Err = err.Error()
	} else if o.w.stats.Released++; !c.kept {
		o.gone = gone{c.group, c.keys()[0], c.token}
		if g := o.groups[c.group]; g != nil {
			for _, key := range c.keys() {
				o.w.must(g.acks.Released(g.front, key, c.token))
			}
		}
	}
	o.record(c.p, e)
}

func (o *callWatch) disbelieve(c *call) {
	o.exits(c)
	for _, key := range c.keys() {
		o.w.must(o.beliefs.End(key, c.caller(), o.w.now))
		o.believers[key] = without(o.believers[key], c)
	}
}

const (
	// lateWord is the time within which a holder must be notified that its hold has ended by itself.
	// After a pause of its process, the time begins anew.
	lateWord = time.Second
	rounding = 10 * time.Microsecond // largest difference between two measurements of the same time
)

func (o *callWatch) holding(c *call) {
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
func (o *callWatch) knows(c *call) {
	if until := c.p.m.pausedUntil; o.w.now < until+lateWord {
		o.w.after(until+lateWord-o.w.now, func() { o.knows(c) })
		return
	}
	o.w.must(o.longest.Check(c.caller(), o.w.now))
}

func (o *callWatch) over(c *call) {
	o.notices.Over(c.caller())
	o.longest.Over(c.caller())
}

// toldWhy observes the error by which a holder is notified that its hold has ended without its own
// Unlock.
func (o *callWatch) toldWhy(c *call, why error) {
	var forced *client.ForcedError
	switch {
	case errors.As(why, new(client.OverdueError)):
		o.w.stats.Overdue++
		o.w.must(o.longest.Overdue(c.caller(), o.w.now))
	case errors.As(why, &forced) || errors.As(why, new(*client.TakenError)):
		o.w.must(o.forced.Told(c.keys(), c.stateToken()))
	}
}

// forcedEnd observes that the state machine ends a hold by force. From now on another caller can
// get the key while the old holder believes that it holds the lock. Only the token protects the
// resource.
func (o *callWatch) forcedEnd(e *history.Event) {
	o.w.stats.Forced++
	o.w.must(o.forced.Ended(append([]string{e.Key}, e.Keys...), e.Token))
	for _, c := range o.believers[e.Key] {
		if c.stateToken() == e.Token {
			c.forced = true
			o.disbelieve(c)
			o.notices.Over(c.caller())
		}
	}
}

func (o *callWatch) ended(g *group, e *history.Event) {
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
			o.w.stats.Delayed++
			o.w.must(g.delays.Ended(e.Session, e.Key, e.Token, delay, o.w.now))
		}
	}
}

// resumed observes that a hold is resumed. The new hold has the expiry delay of the old one, unless
// a request to resume it names a shorter delay.
func (o *callWatch) resumed(e *history.Event) {
	o.w.stats.Resumed++
	if o.stays.reserved[e.Resumes] != 0 {
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

func (o *callWatch) detaches(c *call) {
	o.w.note("%v call %d detaches %v", c.p, c.id, c.keys())
	o.ends(c)
}

// arrives observes that a caller joins the queue of a key. Each holder of the key that requested a
// notice must get one, except for the hold of an upgrade.
func (o *callWatch) arrives(r *voter, key string, terms check.Terms, upgrades lockfsm.Token) {
	for _, c := range o.believers[key] {
		if c.token != upgrades && c.wantsNotice() && !c.told && c.group == r.Group &&
			!c.termsOf(slices.Index(c.keys(), key)).Beside(terms) {
			o.notices.Wanted(c.caller(), o.w.now)
		}
	}
}

func (o *callWatch) wanted(c *call) {
	o.w.stats.Wanted++
	c.told = true
	o.w.note("%v call %d is told of a waiter", c.p, c.id)
	o.notices.Over(c.caller())
}

// renewed observes that a client has handled a renewal of its lease and everything that was sent
// together with the renewal.
func (o *callWatch) renewed(s *lease) {
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
func (o *callWatch) lowers(c *call) {
	o.w.note("%v call %d downgrades %v", c.p, c.id, c.keys())
	o.write(c)
	c.lowered = c.readers()
	o.record(c.p, history.Event{Kind: history.Downgrade, Op: c.id})
	for i, key := range c.keys() {
		o.beliefs.Lower(key, c.caller(), c.termsOf(i))
	}
}

// lowered observes that the hold of a caller is shared in the state.
func (o *callWatch) lowered(c *call, err error) {
	if o.w.stats.Downgraded++; len(c.req.Grant().Modes) > 0 {
		o.w.stats.LoweredMixed++
	}
	if err != nil || !o.shared[c.token] {
		o.w.broken("%v call %d is told that token %d is shared: %v; in the state: %v", c.p, c.id, c.token, err,
			o.shared[c.token])
	}
}

// becomesShared observes that the state makes a hold shared.
func (o *callWatch) becomesShared(g *group, e *history.Event) {
	o.shared[e.Token] = true
	for i, key := range append([]string{e.Key}, e.Keys...) {
		o.w.must(g.fifo.Lowered(key, e.Place, termsOf(e, i)))
	}
}

// doubts observes that a client marks a hold as in doubt, before it publishes another deadline.
func (o *callWatch) doubts(c *call) {
	o.w.stats.InDoubt++
	o.w.note("%v call %d is in doubt of %v", c.p, c.id, c.keys())
	if o.lapse(c.req.Key); !c.own.lapsed {
		c.own.lapsed, c.own.until = true, min(o.w.now, c.p.m.global(c.limit()))
	}
	c.own.doubt = true
}

// regains observes that a hold in doubt is good again. It must not overlap another belief, and the
// state must not have granted the key since.
func (o *callWatch) regains(c *call) {
	o.w.stats.Regained++
	o.w.note("%v call %d is good again with %d", c.p, c.id, c.token)
	if now := c.p.m.clock(); !c.own.doubt || !now.Before(c.limit()) {
		o.w.broken("%v call %d is good again at %v; in doubt: %v, until %v", c.p, c.id, now, c.own.doubt, c.limit())
	}
	c.own.doubt, c.own.lapsed, c.own.until = false, false, 0
	if c.forced = c.forced || o.forced.Over(c.stateToken()); c.forced {
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
func (o *callWatch) notMarked(c *call) {
	if c.mayDoubt() && c.own.lapsed && !c.own.doubt && c.stage == holds && c.p.m.clock().Before(c.limit()) {
		o.w.broken("%v call %d: a renewal is published, and the doubt of %v is not marked", c.p, c.id, c.keys())
	}
}

func (o *callWatch) grants(key string, e *history.Event) {
	if o.newest == nil {
		o.newest = map[string]lockfsm.Token{}
	}
	o.newest[key] = max(o.newest[key], e.Token)
}

// believe observes that a caller believes that it holds a key.
func (o *callWatch) believe(key string, c *call, terms check.Terms) {
	if c.upgrades() {
		o.w.must(o.beliefs.BeginBeside(key, c.caller(), terms, c.raises.caller(), o.w.now))
		return
	}
	o.w.must(o.beliefs.Begin(key, c.caller(), terms, o.w.now))
}

func (o *callWatch) enters(c *call) {
	o.w.stats.Entered++
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
func (o *callWatch) exits(c *call) {
	h := c.handle
	if c.handle = nil; h == nil {
		return
	}
	for _, key := range append([]string{h.want.Key}, h.want.Keys...) {
		o.w.must(o.beliefs.End(key, c.inside(), o.w.now))
	}
}

// untouched checks that a session does not lose its locks with another one: its own lease has
// ended, or the state has ended it, or its own program or process ends it.
func (o *callWatch) untouched(c *call, why client.Loss) {
	s := c.s
	switch {
	case c.stage != holds: // granted and lost in one turn
	case why == client.LossLease && s.p.m.clock().Before(s.deadline):
		o.w.broken("%v call %d: its lease goes on for %v, and the lock is lost with the lease", s, c.id, s.leaseLeft())
	case why == client.LossExpired && !o.overs[sessionOf{c.group, c.session}] && !o.w.cfg.Insider:
		o.w.broken("%v call %d: session %d goes on in the state, and the lock is lost with it", s, c.id, c.session)
	case why == client.LossStopped:
		o.unclosed(c)
	}
}

// unclosed checks that a call does not end with a session that nothing has closed.
func (o *callWatch) unclosed(c *call) {
	if !c.s.closes() && !c.p.leaving {
		o.w.broken("%v call %d ends because its session is closed, and nothing has closed that session", c.s, c.id)
	}
}

// died observes that a process ends. After that none of its callers believes that it holds a lock.
func (o *callWatch) died(p *life) {
	for _, c := range p.calls() {
		o.over(c)
		o.disbelieve(c)
		if c.stage == waits {
			o.w.must(o.served.Answered(c.caller(), false, o.w.now))
		} else {
			o.freed(c)
		}
	}
}

// servedWithin is the time, in addition to some TTLs, in which a waiter must get a free lock after
// healing. A new group may have to be founded first.
const servedWithin = 45 * time.Second
