package client

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

// This file is about requests with Try that wait for the answer of a stay: on the side of the
// request, and on the side of the stay.

// triesStay notes that a request with Try waits. It does so only for the answer of a stay, or for
// another request with Try that waits for one.
func (c *Core) triesStay(now clock.Time, r *Request) {
	if r != nil && r.Try && r.stage == stageWaiting && !r.asks {
		r.asks = true
		if c.asking = append(c.asking, asking{r, now}); len(c.asking) > 2*c.counts.tries+askingSpare {
			c.asking = slices.DeleteFunc(c.asking, func(a asking) bool { return a.request.stage != stageWaiting })
		}
	}
}

// asking is a request with Try, and when it began to wait for the answer of a stay.
type asking struct {
	request *Request
	since   clock.Time
}

// askingSpare is the number of finished requests in Core.asking that cost too little to be removed.
const askingSpare = 64

// endTries fails the requests with Try that have waited too long. ErrHeld would be wrong, because
// the lock may be free.
func (c *Core) endTries(now clock.Time) {
	for len(c.asking) > 0 {
		r := c.asking[0].request
		if waits := r.stage == stageWaiting; waits && now.Sub(c.asking[0].since) < tryWithout {
			return
		} else if waits {
			c.abandon(r)
			c.fail(r, ErrKept)
		}
		c.asking[0] = asking{}
		c.asking = c.asking[1:]
	}
}

// stayAnswer answers the requests with Try, at places up to place, that wait for the stay of the
// request: the caller with the token holds the lock. If why is not empty, it instead reports that
// this caller has lapsed.
type stayAnswer struct {
	request *Request
	entry   *entry
	place   lockfsm.Revision
	token   lockfsm.Token
	why     string
}

// maxLapses bounds the lapses that wait to be sent. The group keeps no more of them.
const maxLapses = 256
