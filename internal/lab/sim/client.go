package sim

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/session/stay"
)

func (p *proc) newClient(ttl time.Duration) *ownClient {
	p.w.clients++
	s := &ownClient{p: p, traced: traced(p.w.clients, p.m.name), core: client.NewCore(p.m.clock(), ttl),
		stays: stay.NewSet(freeStays, p.w.cfg.StayIdle), kept: map[*stay.Request]*keptStay{}}
	s.owner = actor{p: p, turn: s.turn}
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
	if s.core.Turn(now, s) {
		s.owner.rouse()
	}
	if s.deadline != before {
		s.p.w.watch.renewed(s)
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
	s.p.w.watch.clientSends(s, renewals, commands)
	switch {
	case to.ID != s.p.instance:
		return s.p.send(to.ID, to.Addr, frame{renewals: renewals, commands: commands})
	case s.p.replica == nil:
		return errLost
	}
	s.p.replica.asked(to.ID, renewals, commands)
	return nil
}

// Receive implements client.SetMember.
func (s *ownClient) Receive(from nodeid.ID, replies []byte) {
	s.inClient(func(now clock.Time) {
		s.core.Receive(now, from, replies)
		s.p.w.watch.clientHears(s, replies)
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
	c := o.Request.Caller.(*call)
	s.p.w.watch.untouched(c, o.Why)
	c.lost(o.Err)
}

// Doubt implements client.Outlets.
func (s *ownClient) Doubt(o *client.Outcome) { o.Request.Caller.(*call).doubted() }

// Stay implements client.Outlets.
func (s *ownClient) Stay(o *client.Outcome) {
	s.p.w.watch.stay(s, o)
	told := *o
	if n := s.p.w.cfg.StayTokens; n > 0 && o.Last != 0 {
		told.Last = min(o.Last, o.Token+n)
	}
	told.Tell(s.stays, s.window())
	s.stays.Carry(posting{s})
}

// Publish implements client.Outlets.
func (s *ownClient) Publish(deadline, safe clock.Time) {
	s.p.w.watch.published(s, deadline)
	renewed := deadline != s.deadline
	s.deadline, s.safe = deadline, safe
	s.ttl = s.status().TTL
	if renewed {
		s.p.w.watch.extended(s)
		s.stays.Renewed(s.window())
		s.stays.Carry(posting{s})
	}
}

// Outcome implements client.Outlets.
func (s *ownClient) Outcome(o *client.Outcome) {
	c := o.Request.Caller.(*call)
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

// posting passes the commands of the stays to the core in its next turn.
type posting struct{ *ownClient }

// Do implements stay.Outlets.
func (p posting) Do(command *stay.Command) error {
	p.p.w.watch.commands(p.ownClient, command)
	p.inClient(func(now clock.Time) { p.core.Stay(now, command) })
	return nil
}

// Tell implements stay.Outlets.
func (p posting) Tell(n *stay.News) {
	switch c := n.Caller.Caller.(*call); n.Kind {
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
	p.p.w.watch.commands(p.ownClient, command)
	p.core.Stay(p.p.m.clock(), command)
	return nil
}

// held returns the number of held locks. The callers of stays count, and stays do not.
func (s *ownClient) held() int {
	n := s.stays.Counts()
	return n.Inside + max(0, s.status().Held-n.Granted)
}
