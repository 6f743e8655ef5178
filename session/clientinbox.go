package session

import "runtime"

// This file is how things reach the goroutine of a client, many at a time.

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

// clientInput is one thing that happened to a client.
type clientInput struct {
	kind    inputKind
	hold    *Hold
	peer    Peer
	bytes   []byte
	targets []Target
	waiter  *waiter
}

// post puts an input into the inbox. It reports false if the client is closed.
func (c *Client) post(in clientInput) bool {
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

// rouse wakes the goroutine. Whoever puts the first input into an empty inbox must, and nobody else need: it takes out the whole inbox.
func (c *Client) rouse() {
	select {
	case c.wake <- struct{}{}:
	default: // it is awake already
	}
}

// gather lets everybody who is about to post do so, and yields again as long as somebody did: one turn, and one frame, then serve them all. It is
// free for a lone caller.
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
