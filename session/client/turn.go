package client

import (
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Outlets execute the output of a Core. They must not call the Core.
type Outlets interface {
	// Nonce returns random bytes.
	Nonce() lockfsm.Nonce
	// Lost marks the hold of a request as lost. The request is not one of the stays.
	Lost(*Outcome)
	// Doubt marks the hold of a request as in doubt. The request is not one of the stays.
	Doubt(*Outcome)
	// Stay tells the stays an outcome for one of their requests, which may be a loss.
	Stay(*Outcome)
	// Publish publishes the deadline and the time until which the lease is safe; see [Output].
	Publish(deadline, safe clock.Time)
	// Outcome delivers an outcome that is neither a loss nor a doubt, for another request.
	Outcome(*Outcome)
	// Send does what [Config].Send does.
	Send(to nodeid.Endpoint, renewals, commands []byte) error
}

// Nonces gives the core a nonce if it needs one. It must be called before the inputs of a turn.
func (c *Core) Nonces(o Outlets) {
	if c.WantsNonce() {
		c.GiveNonce(o.Nonce())
	}
}

// Turn completes a turn after its inputs. It advances the time and executes the output of the core.
// It reports whether another turn must follow immediately.
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

// End stops the core. All waiting calls fail, and all holds are lost.
func (c *Core) End(now clock.Time, o Outlets) {
	c.Stop()
	out := c.Flush(now)
	out.publish(o)
}

func (out *Output) publish(o Outlets) {
	out.deliver(o, true)
	o.Publish(out.Deadline, out.Safe)
	out.deliver(o, false)
}

// deliver executes the outcomes that must precede Publish, or all others.
func (out *Output) deliver(o Outlets, before bool) {
	for i := range out.Outcomes {
		switch each := &out.Outcomes[i]; {
		case before != (each.Kind == OutcomeLost || each.Kind == OutcomeInDoubt):
		case each.Request.stay() != nil:
			o.Stay(each)
		case each.Kind == OutcomeLost:
			o.Lost(each)
		case each.Kind == OutcomeInDoubt:
			o.Doubt(each)
		default:
			o.Outcome(each)
		}
	}
}
