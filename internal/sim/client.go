package sim

import (
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

func (p *proc) inClient(f func(now clock.Time)) {
	p.owner.post(func(now clock.Time) {
		p.client.Nonces(p)
		f(now)
	})
}

func (p *proc) clientTurn(now clock.Time) clock.Time {
	before := p.deadline
	p.keptDo(now, func(s *client.Stays) { s.Tick(now) })
	if p.client.Turn(now, p) {
		p.owner.rouse()
	}
	if p.deadline != before {
		p.w.watch.renewed(p)
	}
	if phase := p.client.Status(now).Phase; phase != p.phase {
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
	p.inClient(func(now clock.Time) { p.client.Receive(now, from, replies) })
}

// rebind makes the client begin a new incarnation, and returns when this is done.
func (p *proc) rebind(record []byte, voters []founding.Voter) {
	p.inClient(func(now clock.Time) { p.client.Rebind(now, record, replica.Targets(voters)) })
	p.owner.run()
}

// Lost implements client.Outlets.
func (p *proc) Lost(o *client.Outcome) {
	if c, is := o.Request.Caller.(*call); is {
		c.lost(o.Err)
		return
	}
	p.stayOutcome(o)
}

// Publish implements client.Outlets.
func (p *proc) Publish(deadline, safe clock.Time) {
	renewed := deadline != p.deadline
	p.deadline, p.safe = deadline, safe
	p.ttl = p.client.Status(p.m.clock()).TTL
	if renewed {
		p.w.watch.extended(p)
		p.stays.Renewed(p.window())
		p.carry()
	}
}

// Outcome implements client.Outlets.
func (p *proc) Outcome(o *client.Outcome) {
	c, is := o.Request.Caller.(*call)
	if !is {
		p.stayOutcome(o)
		return
	}
	switch o.Kind {
	case client.OutcomeGranted:
		c.granted(o.Token, o.Until)
	case client.OutcomeFailed:
		c.failed(o.Err)
	case client.OutcomeReleased:
		c.released(o.Err)
	case client.OutcomeWanted:
		c.wanted()
	}
}
