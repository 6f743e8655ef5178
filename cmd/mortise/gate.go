package main

import (
	lists "container/list"
	"net"
	"sync"
	"time"
)

const (
	maxConns    = 4096             // connections to one listener, if the process may open enough files
	maxWatchers = 256              // connections to the listener of -observe
	writeWithin = 10 * time.Second // for one write of an answer
)

// gate is the listener of the HTTP API. It limits the number of open connections. If there are too
// many, it closes the one that has waited longest for a request: first of those on which no request
// was ever admitted, then of the others. If requests run on all connections, it closes the new one.
// The peer port treats strangers in the same way.
type gate struct {
	net.Listener
	limit int

	mu sync.Mutex // guards the fields below, and the fields of each visit
	// waiting are the connections on which no admitted request runs, in the order in which they began
	// to wait. Index 1 is for those on which a request was admitted before.
	waiting [2]lists.List
	open    int
}

func newGate(l net.Listener, limit int) *gate { return &gate{Listener: l, limit: limit} }

// visit is a connection of the HTTP API.
type visit struct {
	net.Conn
	gate *gate
	user any // the client, if the connection shows no secret and no token: see userOf

	known  int            // index in gate.waiting
	place  *lists.Element // in gate.waiting; nil while a request runs, and after the end
	closed bool
}

// Accept implements net.Listener.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		v := &visit{Conn: conn, gate: g, user: userOf(conn)}
		oldest, full := g.enter(v)
		if oldest != nil {
			_ = oldest.Close()
		}
		if !full {
			return v, nil
		}
		_ = conn.Close()
	}
}

// enter registers a connection unless there are too many. If oldest is not nil, the caller must
// close it. If full is true, the caller must close the connection of v.
func (g *gate) enter(v *visit) (oldest *visit, full bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open >= g.limit {
		for i := range g.waiting {
			if first := g.waiting[i].Front(); first != nil && oldest == nil {
				oldest = first.Value.(*visit)
			}
		}
		if oldest == nil {
			return nil, true
		}
		oldest.leave()
	}
	g.open++
	v.place = g.waiting[0].PushBack(v)
	return oldest, false
}

// leave gives back the place of a connection. The caller must hold mu.
func (v *visit) leave() {
	if v.closed {
		return
	}
	v.closed = true
	v.gate.open--
	if v.place != nil {
		v.gate.waiting[v.known].Remove(v.place)
		v.place = nil
	}
}

// begin tells the gate that an admitted request runs. The caller calls the returned function when
// the request has ended.
func (v *visit) begin() (end func()) {
	v.gate.mu.Lock()
	defer v.gate.mu.Unlock()
	if v.place != nil {
		v.gate.waiting[v.known].Remove(v.place)
		v.place = nil
	}
	v.known = 1
	return func() {
		v.gate.mu.Lock()
		defer v.gate.mu.Unlock()
		if !v.closed {
			v.place = v.gate.waiting[1].PushBack(v)
		}
	}
}

// Write implements net.Conn. It limits the time of each write, so that a client that reads nothing
// does not occupy a request and its answer.
func (v *visit) Write(b []byte) (int, error) {
	if err := v.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return 0, err
	}
	return v.Conn.Write(b)
}

// Close implements net.Conn.
func (v *visit) Close() error {
	err := v.Conn.Close()
	v.gate.mu.Lock()
	defer v.gate.mu.Unlock()
	v.leave()
	return err
}
