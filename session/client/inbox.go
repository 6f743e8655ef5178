package client

import (
	"runtime"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/session/stay"
)

// Limits of the inbox.
const (
	inboxBytes = 64 << 20 // bytes of replies from the leader
	otherBytes = 1 << 20  // bytes of replies from all other instances together
	inputBytes = 128      // the size of an input without its bytes
)

// The limits of gather. Where the scheduler has long queues, the time ends it.
const (
	maxGathers = 8
	gatherTime = 500 * time.Microsecond
)

type inputKind uint8

const (
	inputAcquire inputKind = iota
	inputCancel
	inputRelease
	inputDetach
	inputDowngrade
	inputExpired // Err has detected that the hold expired
	inputDoubt   // Err has detected that the hold is in doubt
	inputReceive
	inputDown
	inputTargets
	inputFollows
	inputRebind
	inputLeaving
	inputWait
	inputCloseSession
	inputForget
	inputHeld // a waiter requests the held keys
	inputStay
)

type input struct {
	kind    inputKind
	hold    *Hold
	peer    nodeid.ID
	bytes   []byte
	targets []nodeid.Endpoint
	waiter  *waiter
	stay    *stay.Command
}

type waiter struct {
	done   func(Status) bool // nil in a wait for the end of the session
	result chan error
	held   chan []string // buffer of one; only for inputHeld
}

func (c *Client) post(in input) bool {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return false
	}
	first := len(c.inbox) == 0
	c.inbox = append(c.inbox, in)
	c.mu.Unlock()
	if first {
		c.rouse()
	}
	return true
}

func (c *Client) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// gather yields the processor while new inputs arrive, so that one turn and one frame serve many
// callers. With 64 callers, up to 8 yields give a tenth more locks per second than up to 3.
func (c *Client) gather() {
	had, until := 1, clock.Time(0)
	for range maxGathers {
		runtime.Gosched()
		c.mu.Lock()
		has := len(c.inbox)
		c.mu.Unlock()
		if has <= had {
			return
		}
		had = has
		switch now := c.config.Clock.Now(); {
		case until == 0:
			until = now.Add(gatherTime)
		case !now.Before(until):
			return
		}
	}
}
