package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mortise-lock/mortise"
)

// maxPuts limits the changes of data that are remembered for all clients with one secret, or for
// all clients without one. It is more than such clients can have under way.
const maxPuts = 1024

// madePuts remembers the changes of data that had a request ID. A client whose answer was lost
// makes the same call again with the same ID and gets the same answer, although the data has
// changed since, by the first call. The zero value is ready to use.
type madePuts struct {
	mu    sync.Mutex // guards the fields below; never held across a wait
	byID  map[string]*putCall
	order []string // the IDs, the oldest first
}

// putCall is a change of data with an ID. The result is set when done is closed.
type putCall struct {
	id       string
	sum      [sha256.Size]byte // of its terms
	done     chan struct{}
	revision uint64
	err      error
}

// once calls put, which returns a revision, unless a call with this ID has been made: then it
// returns the result of that call. The call continues when the client has gone. ctx limits the wait
// for it. sum is the hash of the terms.
func (p *madePuts) once(ctx context.Context, id string, sum [sha256.Size]byte, put func() (uint64, error)) (uint64,
	error) {
	if id == "" {
		return put()
	}
	c, first := p.enter(id, sum)
	if first {
		c.revision, c.err = put()
		p.leave(c)
		return c.revision, c.err
	}
	if c.sum != sum {
		return 0, fmt.Errorf("%w: the request %q was made before with other terms: give each request an ID of its own",
			mortise.ErrBadRequest, id)
	}
	select {
	case <-c.done:
		return c.revision, c.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// enter returns the call with this ID, and whether it is a new one.
func (p *madePuts) enter(id string, sum [sha256.Size]byte) (c *putCall, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.byID[id]; c != nil {
		return c, false
	}
	if p.byID == nil {
		p.byID = map[string]*putCall{}
	}
	if len(p.order) == maxPuts {
		delete(p.byID, p.order[0])
		p.order = slices.Delete(p.order, 0, 1)
	}
	c = &putCall{id: id, sum: sum, done: make(chan struct{})}
	p.byID[id], p.order = c, append(p.order, id)
	return c, true
}

// leave ends a call. It is forgotten if the group has not decided: the same call may then be made
// again.
func (p *madePuts) leave(c *putCall) {
	close(c.done)
	if c.err == nil || errors.Is(c.err, mortise.ErrConflict) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID[c.id] == c {
		delete(p.byID, c.id)
		p.order = slices.DeleteFunc(p.order, func(id string) bool { return id == c.id })
	}
}
