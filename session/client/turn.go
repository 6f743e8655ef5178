package client

import (
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Outlets carry out the outputs of a Core. They must not call the Core.
type Outlets interface {
	// Nonce returns random bytes.
	Nonce() lockfsm.Nonce
	// Lost marks the hold of a request as lost.
	Lost(*Outcome)
	// Publish publishes the deadline of all holds. They are lost then unless a renewal is acknowledged
	// before. Zero means no session.
	Publish(deadline clock.Time)
	// Outcome passes on an outcome other than a loss.
	Outcome(*Outcome)
	// Send is [Config].Send.
	Send(to nodeid.Endpoint, renewals, commands []byte) error
}

// Nonces passes the core a nonce if it needs one. It is called before the inputs of a turn.
func (c *Core) Nonces(o Outlets) {
	if c.WantsNonce() {
		c.GiveNonce(o.Nonce())
	}
}

// Turn advances the time after the inputs of a turn, and carries out the outputs of the core. It
// reports whether there is more to send immediately.
func (c *Core) Turn(now clock.Time, o Outlets) (more bool) {
	c.Nonces(o)
	c.Tick(now)
	out := c.Flush(now)
	out.publish(o)
	if len(out.Renewals)+len(out.Commands) > 0 && o.Send(out.To, out.Renewals, out.Commands) != nil {
		c.SendFailed(now)
	}
	return out.More
}

// End stops the core: everything that waits fails, and all holds are lost.
func (c *Core) End(now clock.Time, o Outlets) {
	c.Stop()
	out := c.Flush(now)
	out.publish(o)
}

// publish carries out all parts of an output except the frame, in the order that Output requires.
func (out *Output) publish(o Outlets) {
	for i := range out.Outcomes {
		if each := &out.Outcomes[i]; each.Kind == OutcomeLost {
			o.Lost(each)
		}
	}
	o.Publish(out.Deadline)
	for i := range out.Outcomes {
		if each := &out.Outcomes[i]; each.Kind != OutcomeLost {
			o.Outcome(each)
		}
	}
}
