package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/check"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/nodeid/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session/client"
)

// watch observes from outside, in the one true time. It reports to the judges of internal/check,
// and writes the history that is judged at the end.
type watch struct {
	w       *world
	stats   Stats
	history []history.Event

	front     check.Front
	tokens    check.Tokens
	beliefs   check.Beliefs
	register  check.Register
	hashes    check.Hashes
	raft      check.Raft
	rising    check.Rising
	foundings check.Groups
	served    check.Served
	holdings
	members    check.Members
	names      map[nodeid.ID]string // of the machines, by instance
	groups     map[uint64]*group
	believers  map[string][]*call   // the believing holders of each key, until each belief is seen to end
	leaders    int                  // that lead now, in any group
	leaderless time.Duration        // since when no voter leads. Zero means that one leads, or that none has led yet
	gaveUp     map[uint64]bool      // groups that operators gave up
	gone       gone                 // the last one
	bound      map[nodeid.ID]uint64 // the group to whose charter an incarnation was bound
}

// group is what is known from outside about a group.
type group struct {
	charter founding.Charter
	born    bool
	front   uint64                 // highest index that any replica has applied
	newest  *raftlog.Configuration // that any replica has applied
	acks    check.Acks
	fifo    check.FIFO
	delays  check.Delays
}

func newWatch(w *world) *watch {
	o := &watch{w: w, groups: map[uint64]*group{}, believers: map[string][]*call{}, bound: map[nodeid.ID]uint64{},
		gaveUp: map[uint64]bool{}, names: map[nodeid.ID]string{}}
	o.served.Bound = servedWithin + 4*w.cfg.TTL + w.cfg.silence()
	if w.cfg.Options > 0 {
		o.served.Bound += longestDelay * w.cfg.TTL
	}
	o.longest.Late, o.delayed = lateWord, map[lockfsm.Token]time.Duration{}
	o.handed, o.shorter = map[lockfsm.Token]time.Duration{}, map[lockfsm.Token]time.Duration{}
	return o
}

// servedWithin is how long, besides some leases, a waiter of a healed cluster may wait for a free
// lock: a group whose majority is lost has to be given up and founded anew first.
const servedWithin = 45 * time.Second

// silence is how much longer that takes with Replicas in memory: a voter that died without a close
// frame and came back at another address counts as over only after ten minutes.
func (c *Config) silence() time.Duration {
	if c.Durable || len(c.Founders) > 0 {
		return 0
	}
	return 12 * time.Minute
}

// settleWithin is how long a lock may be over in the state before its caller must have been told,
// in a run that heals. Without healing there is no bound, nor for the reverse: while leaders change
// more often than once in a TTL no session expires (promise 4).
const settleWithin = 2 * time.Minute

func (o *watch) record(p *proc, e history.Event) {
	e.At, e.Stream, e.Node = int64(o.w.now), p.stream, p.m.name
	o.history = append(o.history, e)
}

func (o *watch) judge(settled bool) {
	o.stats.Refused, o.stats.Recorded = o.register.Refused(), len(o.history)
	settle := settleWithin + o.w.cfg.silence()
	if !settled {
		settle = time.Hour
	}
	if o.w.fault == "" {
		o.w.must(history.Judge(o.history, history.Options{Settled: settled && o.recorded(), Settle: settle}))
	}
}

// recorded reports whether the history has a grant of the group founded last. Until there is one,
// the history ends with an earlier group, whose locks are gone without a trace.
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

func (o *watch) asks(c *call) {
	o.stats.Calls++
	keys, terms := c.keys(), c.terms()
	o.w.note("%v call %d asks for %v, %+v, try %v, under %v", c.p, c.id, keys, terms, c.req.Try, c.outer)
	o.record(c.p, history.Event{
		Kind: history.Call, Op: c.id, Key: keys[0], Keys: keys[1:], Permits: terms.Permits, Of: terms.Of,
		Try: c.req.Try, Resumes: c.resumes(),
	})
	o.served.Waits(keys, c.caller(), c.req.Try, o.w.now)
	o.stats.meets(terms, o.believers[keys[0]])
}

// meets counts the kinds of requests that meet at a lock.
func (s *Stats) meets(terms check.Terms, there []*call) {
	switch {
	case len(there) == 0:
	case terms.Alone() && !there[0].terms().Alone():
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

// refused observes a call refused as a deadlock: only a call under another can close a circle.
func (o *watch) refused(c *call, err *client.DeadlockError) {
	o.stats.Deadlocks++
	o.w.note("%v call %d: %v", c.p, c.id, err)
	if c.outer == nil || len(err.Circle) == 0 {
		o.w.broken("%v call %d is refused, and is under no lock: %v", c.p, c.id, err)
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
	keys, terms := c.keys(), c.terms()
	o.stats.gets(c, keys, terms)
	o.w.note("%v call %d holds %v with %d", c.p, c.id, keys, c.token)
	o.w.mark('g', c.id, uint64(c.token))
	o.record(c.p, history.Event{Kind: history.Return, Op: c.id, Outcome: history.Granted, Token: c.token})
	o.w.must(o.served.Answered(c.caller(), true, o.w.now))
	for _, key := range keys {
		if g := o.groups[c.group]; g != nil {
			g.acks.Granted(g.front, key, terms, c.token)
		}
		o.lapse(key)
	}
	o.holding(c)
	switch {
	case c.forced: // the state has ended it already
	case c.believes():
		for _, key := range keys {
			o.believers[key] = append(o.believers[key], c)
			o.w.must(o.beliefs.Begin(key, c.caller(), terms, o.w.now))
		}
		o.expect(c.p)
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
}

// believes reports whether by the caller's own clock, read now, it holds the lock.
func (c *call) believes() bool {
	return c.stage == holds && !c.p.dead && c.p.m.clock().Before(c.limit())
}

// lapse ends the beliefs in a key that are over by the clock.
func (o *watch) lapse(key string) {
	for _, c := range o.believers[key] {
		if !c.believes() {
			c.lapsed, c.until = true, min(o.w.now, c.p.m.global(c.limit()))
			o.disbelieve(c)
		}
	}
}

// extended observes that a client publishes another deadline. A lock that was lost by the clock
// must not come back.
func (o *watch) extended(p *proc) {
	for _, c := range p.calls {
		if c.lapsed && c.believes() {
			o.w.broken("%v call %d: the lock %v with token %d was lost by the clock and came back", p, c.id, c.keys(),
				c.token)
		}
	}
	o.expect(p)
}

// expect checks the holders of a process again when its deadline is over, whatever else happens
// then.
func (o *watch) expect(p *proc) {
	deadline, at := p.deadline, p.m.global(p.deadline)+time.Microsecond
	if p.expected == deadline || at <= o.w.now || p.client.Status(p.m.clock()).Held == 0 {
		return
	}
	p.expected = deadline
	o.w.after(at-o.w.now, func() {
		if p.deadline != deadline {
			return
		}
		for _, c := range p.calls {
			if c.stage == holds {
				o.lapse(c.req.Key) // and with it in all others
			}
		}
	})
}

// write is what a holder does under its lock, to a resource that compares tokens; the holder of a
// shared lock only reads.
func (o *watch) write(c *call) {
	alone := c.terms().Alone()
	for _, key := range c.keys() {
		believes := o.beliefs.Believes(key, c.caller())
		if !alone {
			o.w.must(o.register.Read(key, c.caller(), c.token, believes))
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
	o.lapse(c.req.Key)
	o.write(c)
	if c.lapsed { // its first read of the clock shows it
		o.record(c.p, history.Event{Kind: history.Lost, Op: c.id, Until: int64(c.until)})
	}
	o.record(c.p, history.Event{Kind: history.Unlock, Op: c.id})
	o.forgets(c)
}

func (o *watch) forgets(c *call) {
	o.over(c)
	o.disbelieve(c)
	o.freed(c)
}

// ends observes that a hold ends for its holder other than by an unlock.
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

// released observes that an unlock is confirmed, or has failed.
func (o *watch) released(c *call, err error) {
	e := history.Event{Kind: history.Unlocked, Op: c.id}
	if err != nil {
		e.Err = err.Error()
	} else {
		o.stats.Released++
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
	for _, key := range c.keys() {
		o.w.must(o.beliefs.End(key, c.caller(), o.w.now))
		o.believers[key] = without(o.believers[key], c)
	}
}

// died observes that a process ends: no caller in it believes anything any more.
func (o *watch) died(p *proc) {
	for _, c := range p.calls {
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
