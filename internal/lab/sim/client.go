package sim

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/modes"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/session/keeper"
	"github.com/mortise-lock/mortise/session/stay"
)

// ownClient owns the client's core of one session of a process: that of the process itself, or one
// that its program has opened.
type ownClient struct {
	*lease
	p *proc

	owner actor // owns core
	phase client.Phase

	callers []*caller // calls that have not ended, in the order in which they were made
}

func newClient(p *proc, ttl time.Duration) *ownClient {
	p.w.clients++
	s := &ownClient{p: p, lease: &lease{p: p.life, traced: traced(p.w.clients, p.m.name),
		core: client.NewCore(p.m.clock(), ttl), stays: stay.NewSet(freeStays, p.w.cfg.StayIdle),
		kept: map[*stay.Request]*keptStay{}}}
	s.owner = actor{p: p.life, turn: s.turn}
	return s
}

func (s *ownClient) inClient(f func(now clock.Time)) {
	s.owner.post(func(now clock.Time) {
		s.core.Nonces(s)
		f(now)
	})
}

func (s *ownClient) turn(now clock.Time) clock.Time {
	before := s.deadline
	s.stays.Tick(now)
	s.stays.Carry(direct{posting{s}})
	again := s.core.Turn(now, s)
	s.p.w.must(s.core.Check())
	if again {
		s.owner.rouse()
	}
	if s.deadline != before {
		s.p.w.watch.calls.renewed(s.lease)
	}
	if phase := s.core.Status(now).Phase; phase != s.phase {
		if s.phase == client.Attached {
			s.breaks++
		}
		s.phase = phase
		if s == s.p.sessions.First {
			s.p.leaderKnown()
		}
	}
	next := s.core.Next()
	if t := s.stays.Next(now); t != 0 && (next == 0 || t.Before(next)) {
		next = t
	}
	return next
}

// Nonce implements client.Outlets.
func (s *ownClient) Nonce() lockfsm.Nonce { return s.p.w.newNonce() }

// Send implements client.Outlets. A message to the same process is passed directly to its replica.
func (s *ownClient) Send(to nodeid.Endpoint, renewals, commands []byte) error {
	s.p.w.watch.steps.clientSends(s.lease, renewals, commands)
	switch {
	case to.ID != s.p.instance:
		return s.p.send(to.ID, to.Addr, frame{renewals: renewals, commands: commands})
	case s.p.replica == nil:
		return errLost
	}
	s.p.replica.asked(keeper.Sender{ID: to.ID, Life: s.p.begins.Life}, renewals, commands)
	return nil
}

// Receive implements client.SetMember.
func (s *ownClient) Receive(from nodeid.ID, replies []byte) {
	s.inClient(func(now clock.Time) {
		s.core.Receive(now, from, replies)
		s.p.w.watch.steps.clientHears(s.lease, replies)
	})
}

// Rebind implements client.SetMember. It returns when the new incarnation has begun.
func (s *ownClient) Rebind(record []byte, targets []nodeid.Endpoint) {
	s.inClient(func(now clock.Time) { s.core.Rebind(now, record, targets) })
	s.owner.run()
}

// SetTargets implements client.SetMember.
func (s *ownClient) SetTargets(targets []nodeid.Endpoint) {
	s.inClient(func(now clock.Time) { s.core.SetTargets(now, targets) })
}

// Down implements client.SetMember.
func (s *ownClient) Down(peer nodeid.ID) {
	s.inClient(func(now clock.Time) { s.core.Down(now, peer) })
}

// Leaving implements client.SetMember.
func (s *ownClient) Leaving() {
	s.inClient(func(now clock.Time) {
		s.core.Leaving(now)
		s.stays.Leave(client.ErrLeaving)
		s.stays.Carry(direct{posting{s}})
	})
}

// Close implements client.SetMember. It returns when the core has ended.
func (s *ownClient) Close() {
	s.inClient(func(now clock.Time) {
		s.stays.Leave(client.ErrClosed)
		s.stays.Carry(direct{posting{s}})
		s.core.Turn(now, s) // sends the releases
		s.core.End(now, s)
		s.owner.ended = true
	})
	s.owner.run()
}

// closeSession closes the session in the group, unless a lock is held.
func (s *ownClient) closeSession(now clock.Time) error {
	s.stays.GiveBackUnused()
	s.stays.Carry(direct{posting{s}})
	return s.core.CloseSession(now)
}

// Lost implements client.Outlets.
func (s *ownClient) Lost(o *client.Outcome) {
	c := o.Request.Caller.(*caller)
	s.p.w.watch.calls.untouched(c.call, o.Why)
	c.lost(o.Err)
}

// Doubt implements client.Outlets.
func (s *ownClient) Doubt(o *client.Outcome) { o.Request.Caller.(*caller).doubted() }

// Stay implements client.Outlets.
func (s *ownClient) Stay(o *client.Outcome) {
	s.p.w.watch.stays.stay(s.lease, o)
	told := *o
	if n := s.p.w.cfg.StayTokens; n > 0 && o.Last != 0 {
		told.Last = min(o.Last, o.Token+n)
	}
	told.Tell(s.stays, s.window())
	s.stays.Carry(posting{s})
}

// Publish implements client.Outlets.
func (s *ownClient) Publish(deadline, safe clock.Time) {
	s.p.w.watch.steps.published(s.lease, deadline)
	renewed := deadline != s.deadline
	s.deadline, s.safe = deadline, safe
	s.ttl = s.status().TTL
	if renewed {
		s.p.w.watch.calls.extended(s.lease)
		s.stays.Renewed(s.window())
		s.stays.Carry(posting{s})
	}
}

// Outcome implements client.Outlets.
func (s *ownClient) Outcome(o *client.Outcome) {
	c := o.Request.Caller.(*caller)
	switch o.Kind {
	case client.OutcomeGranted:
		c.granted(o.Token, o.Until)
	case client.OutcomeFailed:
		c.failed(o.Err)
	case client.OutcomeReleased:
		c.released(o.Err)
	case client.OutcomeWanted:
		c.wanted()
	case client.OutcomeDowngraded:
		c.downgraded(o.Err)
	case client.OutcomeGood:
		c.good()
	}
}

func (s *ownClient) window() stay.Window {
	return stay.Window{Now: s.p.m.clock(), Safe: s.safe, Deadline: s.deadline, TTL: s.ttl}
}

// held returns the number of held locks. The callers of stays count, and stays do not.
func (s *ownClient) held() int {
	n := s.stays.Counts()
	return n.Inside + max(0, s.status().Held-n.Granted)
}

const openedPoll = 20 * time.Millisecond

func (s *ownClient) attaches(until time.Duration) {
	p, w := s.p, s.p.w
	switch {
	case p.dead || s.owner.ended:
	case s.phase == client.Attached:
		w.stats.Opened++
		w.note("%v is open", s)
		for range 1 + w.opening.IntN(4)/3 {
			w.after(w.spread(w.cfg.Think), func() { s.caller(nil) })
		}
	case w.now >= until && !w.calm:
		w.note("%v is given up", s)
		s.own.closing = true
		p.sessions.Drop(s)
		p.relist()
		s.Close()
	default:
		p.later(openedPoll, func() { s.attaches(until) })
	}
}

// close closes a session, as Session.Close does: once no lock is held, and at last without the
// group's answer.
func (s *ownClient) close() {
	if s.p.dead || s.owner.ended || s.own.closing || s.phase != client.Attached {
		return
	}
	s.p.w.note("%v is to be closed", s)
	s.own.closing = true
	s.p.later(0, func() { s.closeWithin(s.p.w.spread(20 * s.p.w.cfg.TTL)) })
}

func (s *ownClient) closeWithin(patience time.Duration) {
	var err error
	if s.inClient(func(now clock.Time) { err = s.closeSession(now) }); s.p.dead || s.owner.ended {
		return
	}
	s.owner.run()
	if err != nil {
		s.p.later(openedPoll, func() { s.closeWithin(patience) })
		return
	}
	s.closed(s.p.w.now + patience)
}

func (s *ownClient) closed(until time.Duration) {
	w := s.p.w
	if !s.core.Closed() && w.now < until && !s.owner.ended {
		s.p.later(openedPoll, func() { s.closed(until) })
		return
	}
	if s.core.Closed() {
		w.stats.Closed++
	}
	w.note("%v is closed, with an answer: %v", s, s.core.Closed())
	s.p.sessions.Drop(s)
	s.p.relist()
	s.Close()
}

// caller makes a call. If the previous call is given, the new one is for the same key and mode.
func (s *ownClient) caller(previous *caller) {
	p := s.p
	switch until := p.m.pausedUntil; {
	case p.dead || p.w.quiet || p.leaving || s.closes():
	case p.w.now < until:
		p.w.after(until-p.w.now, func() { s.caller(previous) })
	default:
		s.call(nil, previous)
	}
}

func (s *ownClient) call(outer, previous *caller) *caller {
	w := s.p.w
	var r client.Request
	var parts []modes.Part
	if previous == nil {
		r, parts = drawParts(w.world, record(outer))
	} else {
		r = client.Request{Key: previous.req.Key, Try: w.chance(w.cfg.Try)}
		if previous.req.Shared() {
			r.Terms = &client.Terms{Permits: 1}
		}
	}
	c := s.newCall(r)
	c.parts = parts
	if c.under(outer); w.cfg.Jobs > 0 {
		drawJob(w.world, c.call)
	}
	s.begin(c)
	return c
}

// begin draws the options of a call, and makes it.
func (s *ownClient) begin(c *caller) {
	w := s.p.w
	if w.chance(w.cfg.Long) {
		c.hold = w.between(0, 3*w.cfg.TTL)
	}
	drawOptions(w.world, c.call)
	drawGrace(w.world, c.call)
	c.sticky = c.mayKeep() && w.chance(w.cfg.Sticky)
	c.ask()
	if w.chance(w.cfg.Cancel) {
		w.after(w.between(0, w.cfg.TTL), c.leave)
	} else if w.chance(w.cfg.Cancel) {
		w.after(w.between(0, 5*time.Millisecond), c.leave)
	}
}

func (s *ownClient) newCall(r client.Request) *caller {
	w := s.p.w
	w.numbers++
	c := &caller{p: s.p, s: s, call: &call{p: s.p.life, s: s.lease, id: w.numbers, req: r, hold: w.between(0, w.cfg.Hold)}}
	c.req.Caller = c
	return c
}

// posting passes the commands of the stays to the core in its next turn.
type posting struct{ *ownClient }

// Do implements stay.Outlets.
func (p posting) Do(command *stay.Command) error {
	p.p.w.watch.stays.commands(p.lease, command)
	p.inClient(func(now clock.Time) { p.core.Stay(now, command) })
	return nil
}

// Tell implements stay.Outlets.
func (p posting) Tell(n *stay.News) {
	switch c := n.Caller.Caller.(*caller); n.Kind {
	case stay.Granted:
		c.passed()
	case stay.Wanted:
		if c.wantsNotice() {
			c.wanted()
		}
	case stay.Referred:
		c.referred()
	case stay.Failed:
		c.failed(n.Err)
	case stay.Lost:
		c.lost(n.Err)
	}
}

// direct passes the commands of the stays to the core in this turn.
type direct struct{ posting }

// Do implements stay.Outlets.
func (p direct) Do(command *stay.Command) error {
	p.p.w.watch.stays.commands(p.lease, command)
	p.core.Stay(p.p.m.clock(), command)
	return nil
}
