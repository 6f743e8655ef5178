package client

import (
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

// ending is how far the client has come with its end. An epoch is the last one in which the group
// was told.
type ending struct {
	leaving      bool
	leavingEpoch lockfsm.Epoch
	closing      bool
	closeEpoch   lockfsm.Epoch
	closed       bool
}

// CloseSession closes the session as soon as the client is attached. Then Closed reports true.
// CloseSession fails with ErrStillHeld while a lock is held or in doubt. Waiting and later calls
// end with ErrClosed.
func (c *Core) CloseSession(now clock.Time) error {
	c.begin(now)
	if c.ending.closed || c.ending.closing {
		return nil
	}
	if c.counts.held+c.counts.doubts > 0 {
		return ErrStillHeld
	}
	c.ending.closing = true
	c.failWaiting(false, ErrClosed)
	if c.session == 0 && c.opening.sent == 0 {
		c.finishClose()
	}
	return nil
}

// Stop ends every request: waiting calls and unconfirmed releases end with ErrClosed, and held
// locks are lost. A stopped core sends and accepts nothing.
func (c *Core) Stop() {
	c.forgetSession(ErrClosed, SessionStopped)
	c.failWaiting(false, ErrClosed)
	c.finishClose()
}

// Closed reports whether the core was closed. A closed core sends nothing.
func (c *Core) Closed() bool { return c.ending.closed }

func (c *Core) finishClose() {
	c.ending.closed, c.phase, c.askDue = true, Seeking, false
	c.finder.rest()
}

// Leaving implements [Client.Leaving]. Waiting and later calls fail with ErrLeaving. Otherwise a
// lock that is granted now would remain taken after the instance has left.
func (c *Core) Leaving(now clock.Time) {
	c.begin(now)
	if !c.ending.leaving {
		c.ending.leaving = true
		c.failWaiting(false, ErrLeaving)
	}
}

// saysLeaving reports whether Leaving is to be sent in the epoch, once.
func (e *ending) saysLeaving(epoch lockfsm.Epoch) bool {
	says := e.leaving && e.leavingEpoch != epoch
	if says {
		e.leavingEpoch = epoch
	}
	return says
}

// saysClose is like saysLeaving for Close.
func (e *ending) saysClose(epoch lockfsm.Epoch) bool {
	says := e.closing && e.closeEpoch != epoch
	if says {
		e.closeEpoch = epoch
	}
	return says
}
