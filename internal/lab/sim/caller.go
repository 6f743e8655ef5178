package sim

import (
	"errors"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/internal/modes"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/session/stay"
)

type call struct {
	p     *proc
	s     *ownClient // the session in which the call was made
	id    uint64
	req   client.Request
	token lockfsm.Token
	group uint64 // group in which the lock was granted
	// session in which the lock was granted
	session lockfsm.SessionID
	stage   stage
	hold    time.Duration // how long the caller will hold the lock

	// outer is the call under whose lock this call was made. inner is the call that was made under
	// the lock of this call.
	outer, inner *call
	raises       *call // of an upgrade: the call whose hold it upgrades, see upgrade
	crosses      bool  // the caller will upgrade the lock of outer under this one
	raised       *call // the last upgrade of this hold that was granted
	handle       *handle

	tier int // of a job: the number of its locks, with this one; zero means no job

	ends   clock.Time // when the handle ends the hold by itself; zero means never
	forced bool       // the state machine has ended the hold by force
	told   bool       // the caller was notified of a waiter

	parts    []modes.Part   // what the request asks for; nil if its keys say it
	lowered  []lockfsm.Mode // the caller has downgraded its hold to these modes; nil if not
	detaches bool           // the caller will detach the hold instead of releasing it
	once     bool           // the caller makes no other call afterwards

	sticky bool // the caller asks for a pass
	kept   bool // the call waits for a pass or has one
	pass   stay.Caller
	stay   *keptStay // the stay of the pass

	lapsed bool // the hold has ended by the caller's clock
	until  time.Duration

	doubt     bool // the client has marked the hold as in doubt
	patient   bool // the caller does not release the lock in doubt
	postponed bool // the release waits for the end of the doubt
}

// handle is a request that has entered the lock of a call.
type handle struct {
	want  lockfsm.Grant
	reads bool
}

// keptStay is a granted request of the stays.
type keptStay struct {
	key         string
	terms       check.Terms
	group       uint64
	first, last lockfsm.Token
	newest      lockfsm.Token // of the passes
	passes      int
	recalled    bool
	yields      bool // the process was asked to release the stay when it is free
	released    bool // the process has sent a Release

	begun  time.Duration
	leader *proc         // at the grant; may be nil
	asked  time.Duration // when another request began to wait; zero means never
	breaks int           // of the process, at that time
}

// gone is a hold whose release was confirmed to its caller.
type gone struct {
	group uint64
	key   string
	token lockfsm.Token
}

type stage uint8

const (
	waits stage = iota
	holds
	over // the call has ended
)

// caller makes a call. If the previous call is given, the new one is for the same key and mode.
func (s *ownClient) caller(previous *call) {
	p := s.p
	switch until := p.m.pausedUntil; {
	case p.dead || p.w.quiet || p.leaving || s.closes():
	case p.w.now < until:
		p.w.after(until-p.w.now, func() { s.caller(previous) })
	default:
		s.call(nil, previous)
	}
}

func (s *ownClient) call(outer, previous *call) *call {
	w := s.p.w
	var r client.Request
	var parts []modes.Part
	if previous == nil {
		r, parts = w.drawParts(outer)
	} else {
		r = client.Request{Key: previous.req.Key, Try: w.chance(w.cfg.Try)}
		if previous.req.Shared() {
			r.Terms = &client.Terms{Permits: 1}
		}
	}
	c := s.newCall(r)
	if c.outer, c.parts = outer, parts; w.cfg.Jobs > 0 {
		w.drawJob(c)
	}
	s.begin(c)
	return c
}

// begin draws the options of a call, and makes it.
func (s *ownClient) begin(c *call) {
	w := s.p.w
	if w.chance(w.cfg.Long) {
		c.hold = w.between(0, 3*w.cfg.TTL)
	}
	w.options(c)
	w.drawGrace(c)
	c.sticky = c.mayKeep() && w.chance(w.cfg.Sticky)
	c.ask()
	if w.chance(w.cfg.Cancel) {
		w.after(w.between(0, w.cfg.TTL), c.leave)
	} else if w.chance(w.cfg.Cancel) {
		w.after(w.between(0, 5*time.Millisecond), c.leave)
	}
}

func (s *ownClient) newCall(r client.Request) *call {
	w := s.p.w
	w.numbers++
	c := &call{p: s.p, s: s, id: w.numbers, req: r, hold: w.between(0, w.cfg.Hold)}
	c.req.Caller = c
	return c
}

func (c *call) ask() {
	c.s.calls = append(c.s.calls, c)
	c.p.w.watch.asks(c)
	if c.sticky && c.askKept() {
		return
	}
	c.req.Before(c.s.stays)
	c.s.stays.Carry(posting{c.s})
	c.s.inClient(func(now clock.Time) { c.s.core.Acquire(now, &c.req) })
}

// soonAgain is the chance that a caller makes another call for the same key and mode soon after a
// sticky one.
const soonAgain = 0.7

// The method next ends this call. Unless once is set, it waits for a while and then releases the
// lock of the outer call, or makes another call if there is no outer call.
func (c *call) next() {
	p := c.p
	c.stage = over
	c.s.calls = without(c.s.calls, c)
	if o := c.outer; c.once {
		return
	} else if o == nil {
		think, previous := p.w.cfg.Think, (*call)(nil)
		if c.sticky && p.w.chance(soonAgain) {
			think, previous = p.w.cfg.Hold, c
		}
		p.w.after(p.w.between(0, think), func() { c.s.caller(previous) })
	} else if o.inner == c {
		o.inner = nil
		p.w.after(p.w.between(0, 5*time.Millisecond), o.release)
	}
}

func (c *call) leave() {
	if c.stage != waits || c.p.dead {
		return
	}
	if until := c.p.m.pausedUntil; c.kept && c.p.w.now < until {
		c.p.w.after(until-c.p.w.now, c.leave)
		return
	}
	c.p.w.watch.fails(c, "context", 0)
	if c.kept {
		c.cancelKept()
	} else {
		c.s.inClient(func(now clock.Time) { c.s.core.Cancel(now, &c.req) })
	}
	c.next()
}

func (c *call) failed(err error) {
	if c.stage != waits {
		return
	}
	var held *client.HeldError
	var deadlock *client.DeadlockError
	switch {
	case errors.As(err, &held):
		c.p.w.watch.fails(c, "held", held.Token)
	case errors.As(err, &deadlock):
		c.p.w.watch.refused(c, deadlock)
		c.p.w.watch.fails(c, "deadlock", 0)
	default:
		if errors.Is(err, client.ErrClosed) {
			c.p.w.watch.unclosed(c)
		}
		c.p.w.watch.fails(c, err.Error(), 0)
	}
	c.next()
}

func (c *call) granted(token lockfsm.Token, until clock.Time) {
	if c.stage != waits {
		return // the caller has canceled before the grant arrived
	}
	w := c.p.w
	c.stage, c.token, c.group, c.ends = holds, token, c.p.group, until
	c.session = c.s.status().Session
	w.watch.gets(c)
	c.drawDowngrade()
	c.drawHandle()
	if c.drawUpgrade() {
		return
	}
	if 0 < c.tier && c.tier < tiers {
		w.after(0, c.nest)
		return
	}
	if c.mayNest() && w.chance(w.cfg.Nest) {
		w.after(w.between(0, c.hold), c.nest)
		return
	}
	w.after(c.hold, c.release)
}

func (c *call) release() {
	if c.stage != holds || c.p.dead {
		return
	}
	if until := c.p.m.pausedUntil; c.p.w.now < until {
		c.p.w.after(until-c.p.w.now, c.release)
		return
	}
	if c.waitsInDoubt() {
		return
	}
	c.abandonInner()
	if c.kept {
		c.unlockKept()
	} else if c.detaches {
		c.p.w.watch.detaches(c)
		c.s.inClient(func(now clock.Time) { c.s.core.Detach(now, &c.req, "") })
	} else {
		c.p.w.watch.frees(c)
		c.s.inClient(func(now clock.Time) { c.s.core.Release(now, &c.req) })
	}
	c.next()
}

func (c *call) downgrade() {
	if c.stage != holds || c.p.dead {
		return
	}
	if until := c.p.m.pausedUntil; c.p.w.now < until {
		c.p.w.after(until-c.p.w.now, c.downgrade)
		return
	}
	if c.handle != nil && !c.handle.reads {
		return // as Lock.Downgrade, which fails then
	}
	if c.believes() {
		c.p.w.watch.lowers(c)
		to := c.lowered
		c.s.inClient(func(now clock.Time) { c.s.core.Downgrade(now, &c.req, to) })
	}
}

func (c *call) lost(why error) {
	switch c.stage {
	case waits: // granted and lost in one turn
		c.p.w.watch.fails(c, "lost", 0)
		c.next()
	case holds:
		c.p.w.watch.loses(c, why)
		c.abandonInner() // the context of the inner call has ended
		c.next()
	}
}

func (c *call) released(err error) {
	if !c.detaches { // the log shows the result of a detach
		c.p.w.watch.released(c, err)
	}
}

// mayKeep reports whether the call may be sticky. Of the options, only Notice is allowed.
func (c *call) mayKeep() bool {
	t := c.req.Terms
	return c.outer == nil && !c.modal() && (t == nil || len(t.Keys) == 0 && t.Of == 0 && t.Most == 0 &&
		len(t.Value) == 0 && t.Delay == 0 && t.Grace == 0 && t.Longest == 0 && t.Resume == 0 && t.Under == nil)
}

// askKept begins a sticky call. It returns false if the call must ask the group with an ordinary
// request.
func (c *call) askKept() bool {
	s := c.s
	c.pass = stay.Caller{Key: c.req.Key, Shared: c.req.Shared(), Try: c.req.Try, Caller: c}
	answer := s.stays.Lock(s.window(), &c.pass)
	c.kept = answer != stay.Ordinary
	s.stays.Carry(posting{s})
	switch answer {
	case stay.Ordinary:
		s.p.w.watch.stats.Ordinary++
		return false
	case stay.Passed:
		c.passed()
	case stay.Held:
		c.failed(&client.HeldError{Key: c.req.Key, Token: c.pass.Token()})
	}
	return true
}

// passed handles the grant of a pass.
func (c *call) passed() {
	if k := c.s.kept[c.s.stays.Request(&c.pass)]; k == nil {
		c.p.w.broken("%v call %d gets a pass, and no stay was granted", c.p, c.id)
	} else {
		c.stay = k
		k.passes++
		c.granted(c.pass.Token(), 0)
	}
}

// referred makes the call ask the group with an ordinary request.
func (c *call) referred() {
	s := c.s
	s.p.w.watch.stats.Referred++
	c.kept = false
	s.inClient(func(now clock.Time) {
		c.req.Before(s.stays)
		s.stays.Carry(direct{posting{s}})
		s.core.Acquire(now, &c.req)
	})
}

// unlockKept ends a pass. The reading of the clock decides whether the lock was held until now.
func (c *call) unlockKept() {
	s := c.s
	w := s.window()
	var err error
	if !w.Now.Before(s.deadline) {
		err = client.ErrLost
	}
	s.p.w.watch.frees(c)
	s.stays.Unlock(w, &c.pass)
	s.stays.Carry(posting{s})
	c.released(err)
}

func (c *call) cancelKept() {
	c.s.stays.Cancel(c.s.window(), &c.pass)
	c.s.stays.Carry(posting{c.s})
}

// request returns the request of the group under which c holds its lock.
func (c *call) request() *client.Request {
	if c.kept {
		if q := c.s.stays.Request(&c.pass); q != nil {
			return q.Of.(*client.Request)
		}
	}
	return &c.req
}

// stateToken returns the token of the hold in the state.
func (c *call) stateToken() lockfsm.Token {
	if c.kept && c.stay != nil {
		return c.stay.first
	}
	return c.token
}

func (c *call) wantsNotice() bool { return c.req.Terms != nil && c.req.Terms.Notice }
