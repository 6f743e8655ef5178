package main

import (
	"context"
	"errors"
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
	request
	done  chan struct{}
	shown dataShown
	err   error
}

// once calls put, unless a call with the ID of q has been made: then it returns the result of that
// call. The call continues when the client has gone. ctx limits the wait for it.
func (p *madePuts) once(ctx context.Context, q request, put func() (dataShown, error)) (dataShown, error) {
	if q.id == "" {
		return put()
	}
	c, first := p.enter(q)
	if first {
		c.shown, c.err = put()
		p.leave(c)
		return c.shown, c.err
	}
	if c.sum != q.sum {
		return dataShown{}, bad("the request %q was made before with other terms: give each request an ID of its own", q.id)
	}
	select {
	case <-c.done:
		return c.shown, c.err
	case <-ctx.Done():
		return dataShown{}, ctx.Err()
	}
}

// enter returns the call with the ID of q, and whether it is a new one.
func (p *madePuts) enter(q request) (c *putCall, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.byID[q.id]; c != nil {
		return c, false
	}
	if p.byID == nil {
		p.byID = map[string]*putCall{}
	}
	if len(p.order) == maxPuts {
		delete(p.byID, p.order[0])
		p.order = slices.Delete(p.order, 0, 1)
	}
	c = &putCall{request: q, done: make(chan struct{})}
	p.byID[q.id], p.order = c, append(p.order, q.id)
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
