package sim

import (
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/session/stay"
)

func (p *proc) inClient(f func(now clock.Time)) {
	p.owner.post(func(now clock.Time) {
		p.client.Nonces(p)
		f(now)
	})
}

func (p *proc) clientTurn(now clock.Time) clock.Time {
	before := p.deadline
	p.stays.Tick(now)
	p.stays.Carry(direct{posting{p}})
	if p.client.Turn(now, p) {
		p.owner.rouse()
	}
	if p.deadline != before {
		p.w.watch.renewed(p)
	}
	if phase := p.client.Status(now).Phase; phase != p.phase {
		if p.phase == client.Attached {
			p.breaks++
		}
		p.phase = phase
		p.leaderKnown()
	}
	next := p.client.Next()
	if t := p.stays.Next(now); t != 0 && (next == 0 || t.Before(next)) {
		next = t
	}
	return next
}

// Nonce implements client.Outlets.
func (p *proc) Nonce() lockfsm.Nonce { return p.w.newNonce() }

// Send implements client.Outlets. A message to the same process is passed directly to its replica.
func (p *proc) Send(to nodeid.Endpoint, renewals, commands []byte) error {
	p.w.watch.clientSends(p, renewals, commands)
	switch {
	case to.ID != p.instance:
		return p.send(to.ID, to.Addr, frame{renewals: renewals, commands: commands})
	case p.replica == nil:
		return errLost
	}
	p.replica.asked(to.ID, renewals, commands)
	return nil
}

func (p *proc) clientReceive(from nodeid.ID, replies []byte) {
	p.inClient(func(now clock.Time) {
		p.client.Receive(now, from, replies)
		p.w.watch.clientHears(p, replies)
	})
}

// rebind makes the client begin a new incarnation, and returns when this is done.
func (p *proc) rebind(record []byte, voters []founding.Voter) {
	p.inClient(func(now clock.Time) { p.client.Rebind(now, record, replica.Targets(voters)) })
	p.owner.run()
}

// Lost implements client.Outlets.
func (p *proc) Lost(o *client.Outcome) { o.Request.Caller.(*call).lost(o.Err) }

// Doubt implements client.Outlets.
func (p *proc) Doubt(o *client.Outcome) { o.Request.Caller.(*call).doubted() }

// Stay implements client.Outlets.
func (p *proc) Stay(o *client.Outcome) {
	p.w.watch.stay(p, o)
	told := *o
	if n := p.w.cfg.StayTokens; n > 0 && o.Last != 0 {
		told.Last = min(o.Last, o.Token+n)
	}
	told.Tell(p.stays, p.window())
	p.stays.Carry(posting{p})
}

// Publish implements client.Outlets.
func (p *proc) Publish(deadline, safe clock.Time) {
	p.w.watch.published(p, deadline)
	renewed := deadline != p.deadline
	p.deadline, p.safe = deadline, safe
	p.ttl = p.client.Status(p.m.clock()).TTL
	if renewed {
		p.w.watch.extended(p)
		p.stays.Renewed(p.window())
		p.stays.Carry(posting{p})
	}
}

// Outcome implements client.Outlets.
func (p *proc) Outcome(o *client.Outcome) {
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

func (p *proc) window() stay.Window {
	return stay.Window{Now: p.m.clock(), Safe: p.safe, Deadline: p.deadline, TTL: p.ttl}
}

// posting passes the commands of the stays to the core in its next turn.
type posting struct{ *proc }

// Do implements stay.Outlets.
func (p posting) Do(command *stay.Command) error {
	p.w.watch.commands(p.proc, command)
	p.inClient(func(now clock.Time) { p.client.Stay(now, command) })
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
	p.w.watch.commands(p.proc, command)
	p.client.Stay(p.m.clock(), command)
	return nil
}

// held returns the number of held locks. The callers of stays count, and stays do not.
func (p *proc) held() int {
	n := p.stays.Counts()
	return n.Inside + max(0, p.client.Status(p.m.clock()).Held-n.Granted)
}
