package sim

import (
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
)

// This file stands for Client's shell: it feeds the client core and hands on its outcomes, in the order that ClientOutput prescribes.

// inClient runs f on the client's owner.
func (p *proc) inClient(f func(now clock.Time)) {
	p.owner.post(func(now clock.Time) {
		p.giveNonce()
		f(now)
	})
}

func (p *proc) giveNonce() {
	if p.client.WantsNonce() {
		p.client.GiveNonce(p.w.newNonce())
	}
}

func (p *proc) clientTurn(now clock.Time) clock.Time {
	p.giveNonce()
	p.client.Tick(now)
	out := p.client.Flush(now)
	p.finish(out)
	if len(out.Renewals)+len(out.Commands) > 0 && !p.submit(out.To, out.Renewals, out.Commands) {
		p.client.SendFailed(now)
	}
	if out.More {
		p.owner.rouse()
	}
	if phase := p.client.Status(now).Phase; phase != p.phase {
		p.phase = phase
		p.leaderKnown()
	}
	return p.client.Next()
}

// submit is the client's way to a voter's keeper; on the same process it is a plain call.
func (p *proc) submit(to session.Target, renewals, commands []byte) bool {
	if to.Peer != p.instance {
		return p.send(to.Peer, to.Addr, frame{renewals: renewals, commands: commands})
	}
	if p.replica == nil {
		return false
	}
	p.replica.asked(to.Peer, renewals, commands)
	return true
}

func (p *proc) clientReceive(from nodeid.ID, replies []byte) {
	p.inClient(func(now clock.Time) { p.client.Receive(now, from, replies) })
}

func (p *proc) clientDown(instance nodeid.ID) {
	p.inClient(func(now clock.Time) { p.client.Down(now, instance) })
}

// rebind begins a new life of the client, and returns when that is done, as the shell's does.
func (p *proc) rebind(record []byte, targets []session.Target) {
	p.inClient(func(now clock.Time) { p.client.Rebind(now, record, targets) })
	p.owner.run()
}

// finish marks what is lost, publishes the deadline, and then hands on the rest.
func (p *proc) finish(out client.Output) {
	for _, o := range out.Outcomes {
		if o.Kind == client.OutcomeLost {
			o.Request.Caller.(*call).lost(o.Err)
		}
	}
	prolonged := out.Deadline != p.deadline
	if prolonged {
		p.deadline = out.Deadline
		p.w.watch.extended(p)
	}
	for _, o := range out.Outcomes {
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
		}
	}
	if prolonged {
		p.w.watch.renewed(p)
	}
}
