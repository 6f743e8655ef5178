package mortisepair

import (
	"fmt"
	"time"
)

// This file has the state machine of a Breaker, without mutex, clock and hooks.

// State is the state of a Breaker.
type State int

const (
	Closed   State = iota // calls go to the Locker
	Open                  // no call goes to the Locker
	HalfOpen              // one call goes to the Locker, as the probe
)

func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half-open"
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// Change is a change of the state of a Breaker.
type Change struct {
	Number   uint64 // 1 for the first change of this Breaker
	From, To State
	Cause    error // why the Breaker opened, or that it was tripped; nil for other changes
}

type verdict int

const (
	neither verdict = iota
	success
	failure
)

// circuit is the state of a Breaker. A turn is the time between two changes of state. Results of
// earlier turns do not count.
type circuit struct {
	failures int // how many consecutive failures open it
	pause    time.Duration

	state   State
	turn    uint64
	failed  int       // consecutive failures, while Closed
	until   time.Time // end of the pause, while Open
	tripped bool      // it is Open until reset is called
	probing bool      // the probe is in progress, while HalfOpen
}

func (c *circuit) enter(now time.Time) (turn uint64, ok bool, change Change) {
	switch {
	case c.state == Closed:
		return c.turn, true, Change{}
	case c.state == Open && !c.tripped && !now.Before(c.until):
		change = c.become(HalfOpen, nil)
	case c.state == Open || c.probing:
		return 0, false, Change{}
	}
	c.probing = true
	return c.turn, true, change
}

// report applies the result v of a call for which enter has returned ok. If the result of a probe
// is neither success nor failure, the next call is the probe.
func (c *circuit) report(now time.Time, turn uint64, v verdict, cause error) Change {
	if turn != c.turn {
		return Change{}
	}
	c.probing = false
	switch v {
	case success:
		c.failed = 0
		if c.state == HalfOpen {
			return c.become(Closed, nil)
		}
	case failure:
		c.failed++
		if c.state == HalfOpen || c.failed >= c.failures {
			c.until = now.Add(c.pause)
			return c.become(Open, cause)
		}
	}
	return Change{}
}

func (c *circuit) trip(cause error) Change {
	c.tripped = true
	return c.become(Open, cause)
}

// reset closes the circuit if it is tripped.
func (c *circuit) reset() Change {
	if !c.tripped {
		return Change{}
	}
	c.tripped = false
	return c.become(Closed, nil)
}

func (c *circuit) become(to State, cause error) Change {
	c.turn++
	change := Change{Number: c.turn, From: c.state, To: to, Cause: cause}
	c.state, c.failed, c.probing = to, 0, false
	return change
}
