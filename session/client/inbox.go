package client

import (
	"runtime"

	"github.com/mortise-lock/mortise/session"
)

// This file is how things reach the goroutine of a client, many at a time.

// Bounds of what waits for the goroutine.
const (
	inboxBytes = 64 << 20 // of replies of the client's own leader
	otherBytes = 1 << 20  // of replies of all other instances together
	inputBytes = 128      // a run of replies beside its bytes
)

// gatherMost is how often the goroutine yields before a turn, at most.
const gatherMost = 3

type inputKind uint8

const (
	inputAcquire inputKind = iota
	inputCancel
	inputRelease
	inputDetach
	inputExpired // Err found the hold expired before the goroutine did
	inputReceive
	inputDown
	inputTargets
	inputRebind
	inputLeaving
	inputWait
	inputCloseSession
	inputForget // a waiter has left
	inputHeld   // a waiter wants to know what is held
)

// input is one thing that happened to a client.
type input struct {
	kind    inputKind
	hold    *Hold
	peer    session.Peer
	bytes   []byte
	targets []session.Target
	waiter  *waiter
}

// post puts an input into the inbox. It reports false if the client is closed.
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

// rouse wakes the goroutine. Whoever puts the first input into an empty inbox must, and nobody else
// need: it takes out the whole inbox.
func (c *Client) rouse() {
	select {
	case c.wake <- struct{}{}:
	default: // it is awake already
	}
}

// gather lets everybody who is about to post do so, and yields again as long as somebody did: one
// turn, and one frame, then serve them all. It is free for a lone caller.
func (c *Client) gather() {
	had := 1
	for range gatherMost {
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
