package client

import (
	"runtime"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Limits of the inbox.
const (
	inboxBytes = 64 << 20 // limit for replies from the client's leader
	otherBytes = 1 << 20  // limit for replies from all other instances together
	inputBytes = 128      // the size of an input without its bytes
)

const maxGathers = 3

type inputKind uint8

const (
	inputAcquire inputKind = iota
	inputCancel
	inputRelease
	inputDetach
	inputExpired // Err has detected that the hold expired
	inputReceive
	inputDown
	inputTargets
	inputRebind
	inputLeaving
	inputWait
	inputCloseSession
	inputForget // the context of a waiter has ended
	inputHeld   // a waiter asks which locks are held
)

type input struct {
	kind    inputKind
	hold    *Hold
	peer    nodeid.ID
	bytes   []byte
	targets []nodeid.Endpoint
	waiter  *waiter
}

// post appends an input to the inbox. It reports false if the client is closed.
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

// rouse wakes the goroutine. It must be called only for the first input into an empty inbox,
// because the goroutine processes the whole inbox.
func (c *Client) rouse() {
	select {
	case c.wake <- struct{}{}:
	default: // the goroutine is already being woken
	}
}

// gather yields the processor so that other goroutines can post, and repeats this while inputs
// arrive, up to maxGathers times. So one turn and one frame serve many callers. With only one
// caller, gather costs almost nothing.
func (c *Client) gather() {
	had := 1
	for range maxGathers {
		runtime.Gosched()
		c.mu.Lock()
		has := len(c.inbox)
		c.mu.Unlock()
		if has <= had {
			return
		}
		had = has
	}
}
