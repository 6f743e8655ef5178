package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session/client"
)

// watch observes the run from outside, in global time. It passes its observations to the judges of
// internal/lab/check, and records the history that is judged at the end.
type watch struct {
	w       *world
	stats   Stats
	history []history.Event

	front     check.Front
	tokens    check.Tokens
	believed  check.Tokens // the tokens of exclusive holders, in the order in which they got them
	beliefs   check.Beliefs
	register  check.Register
	hashes    check.Hashes
	raft      check.Raft
	rising    check.Rising
	leases    check.Leases
	foundings check.Groups
	served    check.Served
	holdings
	members check.Members
	names   map[nodeid.ID]string // machine of each instance
	groups  map[uint64]*group
	// for each key, the calls whose caller believes that it holds the lock
	believers map[string][]*call
	leaders   int // replicas that lead now, in any group
	// if leaders is 0: when the last leader stopped leading, or zero if no voter has led yet
	leaderless time.Duration
	gaveUp     map[uint64]bool
	reserved   map[lockfsm.Token]lockfsm.Token // the first and the last token of each stay
	recalled   func(*machine)                  // called when a recall of a stay begins; may be nil
	written    map[uint64]*written             // by group
	gone       gone                            // the last confirmed release
	bound      map[nodeid.ID]uint64            // the group to whose charter each incarnation was bound
	asked      map[sessionOf]bool              // sessions that their client has closed
	overs      map[sessionOf]bool              // sessions that the state has ended
}

// sessionOf is a session of a group.
type sessionOf struct {
	group   uint64
	session lockfsm.SessionID
}

type group struct {
	charter founding.Charter
	born    bool
	front   uint64                 // highest index that any replica has applied
	newest  *raftlog.Configuration // newest configuration that any replica has applied
	acks    check.Acks
	fifo    check.FIFO
	delays  check.Delays
}

func newWatch(w *world) *watch {
	o := &watch{w: w, groups: map[uint64]*group{}, believers: map[string][]*call{}, bound: map[nodeid.ID]uint64{},
		asked: map[sessionOf]bool{}, overs: map[sessionOf]bool{}, gaveUp: map[uint64]bool{}, written: map[uint64]*written{},
		names: map[nodeid.ID]string{}, reserved: map[lockfsm.Token]lockfsm.Token{}}
	o.served.Bound = servedWithin + 4*w.cfg.TTL + w.cfg.silence()
	if w.cfg.Options > 0 {
		o.served.Bound += longestDelay * w.cfg.TTL
	}
	o.leases.Passes = recallPasses
	o.longest.Late, o.delayed = lateWord, map[lockfsm.Token]time.Duration{}
	o.handed, o.shorter = map[lockfsm.Token]time.Duration{}, map[lockfsm.Token]time.Duration{}
	o.shared = map[lockfsm.Token]bool{}
	return o
}

// servedWithin is the time, in addition to some TTLs, in which a waiter must get a free lock after
// healing. A new group may have to be founded first.
const servedWithin = 45 * time.Second

// silence is added to some time limits if the run has no founders and no disks. A voter that
// crashed without a close frame and restarted at another address counts as ended only after ten
// minutes.
func (c *Config) silence() time.Duration {
	if c.Durable || len(c.Founders) > 0 {
		return 0
	}
	return 12 * time.Minute
}

// In a run that heals, settleWithin bounds the time between the end of a lock for its caller and
// the end of the lock in the state machine. Without healing there is no bound. Leaders may then
// change more often than once in a TTL, so that no session expires (promise 4 in
// docs/GUARANTEES.md).
const settleWithin = 2 * time.Minute

func (o *watch) record(p *proc, e history.Event) {
	e.At, e.Stream, e.Node = int64(o.w.now), p.stream, p.m.name
	o.history = append(o.history, e)
}

func (o *watch) judge(settled bool) {
	o.stats.Refused, o.stats.Recorded = o.register.Refused(), len(o.history)
	settle := settleWithin + o.w.cfg.silence()
	if o.w.cfg.Doubts > 0 {
		settle += longestGrace * o.w.cfg.TTL
	}
	if !settled {
		settle = time.Hour
	}
	if o.w.fault == "" {
		err := history.Judge(o.history, history.Options{Settled: settled && o.recorded(), Settle: settle})
		o.w.must(err)
		o.w.faultAt = objection(err, o.w.faultAt)
	}
}

// objection returns when the last event happened that shows what a judge has found, in page time.
// Of other errors it returns the second argument.
func objection(err error, otherwise time.Duration) time.Duration {
	var v *history.Violation
	if !errors.As(err, &v) || len(v.Events) == 0 {
		return otherwise
	}
	at := time.Duration(0)
	for _, e := range v.Events {
		at = max(at, time.Duration(e.At)-time.Hour)
	}
	return at
}

// recorded reports whether the history has a grant of the group that was founded last. Without this
// grant the history does not show that the locks of earlier groups have ended.
func (o *watch) recorded() bool {
	var last founding.Charter
	for _, g := range o.groups {
		if g.born && g.charter.FoundedUnixMS > last.FoundedUnixMS {
			last = g.charter
		}
	}
	return last.Group == 0 || slices.ContainsFunc(o.history, func(e history.Event) bool {
		return e.Kind == history.Grant && uint64(e.Group) == last.Group
	})
}

func (c *call) caller() check.Caller { return check.Caller{Node: c.p.m.name, Op: c.id} }

// differs tells what distinguishes a request from one for exclusive locks that may wait.
func (c *call) differs(terms check.Terms, modes string) (text string) {
	if terms != (check.Terms{}) {
		text += fmt.Sprintf(", %d permits of %d", terms.Permits, terms.Of)
	}
	if modes != "" {
		text += fmt.Sprintf(", in the modes %q", modes)
	}
	if c.req.Try {
		text += ", without a wait"
	}
	if c.outer != nil {
		text += fmt.Sprintf(", under %v", c.outer)
	}
	return text
}

func (o *watch) asks(c *call) {
	o.stats.Calls++
	keys, terms, modes := c.keys(), c.terms(), ""
	if c.modal() {
		modes = history.Modes(c.req.Terms.Modes)
	}
	switch {
	case len(c.parts) > 0:
		o.stats.MixedModes++
	case c.modal() && !c.upgradable():
		o.stats.Paths++
	}
	o.w.note("%v call %d asks for %v%s", c.p, c.id, keys, c.differs(terms, modes))
	o.record(c.p, history.Event{
		Kind: history.Call, Op: c.id, Key: keys[0], Keys: keys[1:], Permits: terms.Permits, Of: terms.Of,
		Modes: modes, Try: c.req.Try, Resumes: c.resumes(), Upgrades: c.upgraded(),
	})
	o.served.Waits(keys, c.caller(), c.req.Try, o.w.now)
	o.stats.meets(c.termsOf(0), o.believers[keys[0]])
}

func (s *Stats) meets(terms check.Terms, there []*call) {
	switch {
	case len(there) == 0:
	case terms.Alone() && !there[0].termsOf(0).Alone():
		s.Behind++
	case terms.Of > 0:
		s.Crowded++
	}
}

func (c *call) String() string {
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("call %d", c.id)
}

// refused observes that a call is refused as a deadlock. Only a call under the lock of another call
// can cause a deadlock.
func (o *watch) refused(c *call, err *client.DeadlockError) {
	o.stats.Deadlocks++
	o.w.note("%v call %d: %v", c.p, c.id, err)
	if c.outer == nil || len(err.Circle) == 0 {
		o.w.broken("%v call %d is refused, and is under no lock: %v", c.p, c.id, err)
	}
	if c.tier > 0 {
		o.w.broken("%v call %d is limit %d of a job, and is refused: %v", c.p, c.id, c.tier, err)
	}
}

func (o *watch) fails(c *call, why string, held lockfsm.Token) {
	o.stats.Failed++
	if why == "context" {
		o.stats.Cancelled++
	}
	o.w.note("%v call %d fails: %s", c.p, c.id, why)
	e := history.Event{Kind: history.Return, Op: c.id, Outcome: history.Failed, Err: why}
	if why == client.ErrQueueFull.Error() {
		o.stats.Full++
	}
	if why == "held" {
		e.Outcome, e.Token, e.Err = history.Held, held, ""
	}
	o.record(c.p, e)
	o.w.must(o.served.Answered(c.caller(), false, o.w.now))
}

func (o *watch) gets(c *call) {
	keys := c.keys()
	if c.resumes() != 0 && (len(keys) > 1 || !c.termsOf(0).Alone()) {
		o.stats.Mixed++
	}
	o.stats.gets(c, keys, c.termsOf(0))
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
		o.pass(c)
	}
	if c.upgrades() {
		c.raises.raised = c
		if o.stats.Upgraded++; c.outer != c.raises {
			o.stats.UpgradedInside++
		}
	}
	o.holding(c)
	switch {
	case c.forced: // the state machine has already ended the hold by force
	case c.believes():
		if !c.kept {
			o.holdStep(c, check.Believes)
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
		c.lapsed, c.until = true, o.w.now
	}
	o.write(c)
}

func (s *Stats) gets(c *call, keys []string, terms check.Terms) {
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

// believes reports whether the caller holds the lock at this moment by its own clock.
func (c *call) believes() bool {
	return c.stage == holds && !c.p.dead && c.p.m.clock().Before(c.limit()) && !(c.lapsed && c.mayDoubt())
}

// lapse ends the beliefs of all callers whose hold of a key has ended by their own clock.
func (o *watch) lapse(key string) {
	for _, c := range o.believers[key] {
		if !c.believes() {
			c.lapsed, c.until = true, min(o.w.now, c.p.m.global(c.limit()))
			o.disbelieve(c)
		}
	}
}

// extended observes that a client publishes a new deadline. A lock that has ended by the caller's
// clock must not be held again.
func (o *watch) extended(s *ownClient) {
	for _, c := range s.calls {
		if c.lapsed && c.believes() {
			o.w.broken("%v call %d: the lock %v with token %d was lost by the clock and came back", s, c.id, c.keys(),
				c.token)
		}
		if c.believes() && !c.kept {
			o.holdStep(c, check.Believes)
		}
		o.notMarked(c)
	}
	o.expect(s)
}

// expect schedules a check for the deadline of a session. If the deadline has not changed by
// then, its callers no longer believe that they hold locks.
func (o *watch) expect(s *ownClient) {
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
func (o *watch) write(c *call) {
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

func (o *watch) freed(c *call) {
	for _, key := range c.keys() {
		o.served.Freed(key, c.caller(), o.w.now)
	}
}

func (o *watch) frees(c *call) {
	o.w.note("%v call %d unlocks %v", c.p, c.id, c.keys())
	if c.kept && c.stay.asked != 0 && !c.stay.recalled {
		o.stats.Crossed++
	}
	o.lapse(c.req.Key)
	o.write(c)
	if c.lapsed { // the caller has already lost the lock
		o.record(c.p, history.Event{Kind: history.Lost, Op: c.id, Until: int64(c.until)})
	}
	o.record(c.p, history.Event{Kind: history.Unlock, Op: c.id})
	o.forgets(c)
}

func (o *watch) forgets(c *call) {
	if !c.kept {
		o.holdStep(c, check.Forgets)
	}
	o.over(c)
	o.disbelieve(c)
	o.freed(c)
}

func (o *watch) ends(c *call) {
	o.lapse(c.req.Key)
	until := o.w.now
	if c.lapsed {
		until = c.until
	}
	o.write(c)
	o.record(c.p, history.Event{Kind: history.Lost, Op: c.id, Until: int64(until)})
	o.forgets(c)
}

func (o *watch) loses(c *call, why error) {
	o.stats.Lost++
	o.w.note("%v call %d has lost %v: %v", c.p, c.id, c.keys(), why)
	o.toldWhy(c, why)
	o.ends(c)
}

func (o *watch) released(c *call, err error) {
	e := history.Event{Kind: history.Unlocked, Op: c.id}
	if err != nil {
		e.Err = err.Error()
	} else if o.stats.Released++; !c.kept {
		o.gone = gone{c.group, c.keys()[0], c.token}
		if g := o.groups[c.group]; g != nil {
			for _, key := range c.keys() {
				o.w.must(g.acks.Released(g.front, key, c.token))
			}
		}
	}
	o.record(c.p, e)
}

func (o *watch) disbelieve(c *call) {
	o.exits(c)
	for _, key := range c.keys() {
		o.w.must(o.beliefs.End(key, c.caller(), o.w.now))
		o.believers[key] = without(o.believers[key], c)
	}
}

// died observes that a process ends. After that none of its callers believes that it holds a lock.
func (o *watch) died(p *proc) {
	o.diedKept(p)
	for _, c := range p.calls() {
		o.over(c)
		o.disbelieve(c)
		if c.stage == waits {
			o.w.must(o.served.Answered(c.caller(), false, o.w.now))
		} else {
			o.freed(c)
		}
	}
	if p.m.disk == nil {
		o.foundings.EndedEverywhere(nodeidtest.Number(p.instance))
	}
}

// binds checks that an incarnation is never bound to two groups.
func (o *watch) binds(p *proc) {
	if p.core.Founding.Phase() != founding.Bound {
		return
	}
	instance, group := p.core.Founding.Instance(), p.core.Founding.Group()
	if was := o.bound[instance]; was != 0 && was != group {
		o.w.broken("%v is bound to group %x, and was bound to group %x in the same life", p, group, was)
	}
	o.bound[instance] = group
}

// leaves checks a restart in place. An instance with a disk may leave its group only if operators
// have given up the group. A voter without a disk may leave only a group that can no longer elect
// a leader. In a run with an insider, the second rule is not checked.
func (o *watch) leaves(p *proc) {
	switch {
	case !p.member || o.gaveUp[p.group]:
	case p.m.disk != nil:
		o.w.broken("%v leaves group %x, which its disk has and people have not given up", p, p.group)
	case p.replica != nil && !o.w.cfg.Insider && o.lives(p.replica):
		o.w.broken("%v leaves group %x, in which it votes and a majority of the replicas runs", p, p.group)
	}
}

// The longest expiry delay and the longest grace, in TTLs.
const (
	longestDelay = 4
	longestGrace = 8
)
