package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// This file limits what the clients of the HTTP API can use of the agent: connections, running
// requests, the bytes of their bodies, and turns. A client is a derived secret, a token, a user of
// this machine, or anyone.

const (
	headerWithin = 5 * time.Second // for the header of a request
	bodyWithin   = 5 * time.Second // for its body
	idleWithin   = 2 * time.Minute // between two requests of a connection
	headerBytes  = 32 << 10        // a derived secret has at most 16 KiB
	bodiesBytes  = 32 << 20        // bodies of all running requests

	// A client has turnsEach turns. A request takes one when it is admitted and gives it back when it
	// is answered, or after turnTime, because then it waits for something else than the processor.
	turnsEach = 16
	turnTime  = 5 * time.Millisecond

	refusalEvery = 2 * time.Millisecond // between two answers to requests that are not admitted
	refusalLine  = 5 * time.Second      // longest wait for such an answer; then the connection ends
)

type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// newServer returns a server for a handler of the door. Requests that wait for a lock, and answers
// that go on, have no time limit as a whole, so the limits are for headers, bodies and each write.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: headerWithin, IdleTimeout: idleWithin,
		MaxHeaderBytes: headerBytes, ConnContext: withConn}
}

// entry admits requests. It is safe for concurrent use.
type entry struct {
	requests  *shares // running requests
	bodies    *shares // bytes
	turns     turns
	refusals  pace
	strangers strangers
}

func newEntry(requests int) *entry {
	return &entry{requests: newShares(requests), bodies: newShares(bodiesBytes),
		turns:    turns{each: turnsEach, long: turnTime, of: map[any]*line{}},
		refusals: pace{every: refusalEvery, most: refusalLine}, strangers: strangers{all: map[string]*rendered{}}}
}

// admit calls next for a request of a client, unless the client uses too much.
func (e *entry) admit(w http.ResponseWriter, r *http.Request, client any, next http.HandlerFunc) {
	if !e.requests.take(client, 1) {
		e.refuse(w, r, func() { refuse(w, errManyRequests) })
		return
	}
	defer e.requests.give(client, 1)
	size := int(r.ContentLength)
	if size < 0 || size > maxBody {
		size = maxBody
	}
	if !e.bodies.take(client, size) {
		e.refuse(w, r, func() { refuse(w, errManyBytes) })
		return
	}
	defer e.bodies.give(client, size)
	if v, ok := r.Context().Value(connKey{}).(*visit); ok {
		defer v.begin()()
	}
	if size > 0 {
		limitBody(w, r)
	}
	leave, err := e.turns.take(r.Context(), client)
	if err != nil {
		return // the client has gone
	}
	defer leave()
	next(w, r)
}

// refuse answers a request that is not admitted. Such requests are answered at a limited rate,
// because a client that is refused may ask again at once, on many connections.
func (e *entry) refuse(w http.ResponseWriter, r *http.Request, answer func()) {
	if !e.refusals.wait(r.Context()) {
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
	answer()
}

// userOfConn returns the client of the request's connection.
func userOfConn(r *http.Request) any {
	if v, ok := r.Context().Value(connKey{}).(*visit); ok {
		return v.user
	}
	return anyone{}
}

// limitBody sets a limit for the time until the body of a request has arrived.
func limitBody(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(bodyWithin)) == nil {
		r.Body = &timedBody{r.Body, control}
	}
}

// timedBody lifts the time limit at the end of the body. Then the server reads from the connection
// to learn whether the client has gone.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// turns lets a few requests of each client begin at the same time, so that a client with a thousand
// requests takes no more of the processor from a client with one than a client with a few does.
type turns struct {
	each int
	long time.Duration

	mu sync.Mutex // guards the fields below; never held while blocking
	of map[any]*line
}

type line struct {
	places chan struct{}
	users  int // requests that wait for a turn, or have one
}

// take waits for a turn of a client. If it succeeds, the caller calls leave when the request has
// been answered. An error is that of ctx.
func (t *turns) take(ctx context.Context, client any) (leave func(), err error) {
	t.mu.Lock()
	l := t.of[client]
	if l == nil {
		l = &line{places: make(chan struct{}, t.each)}
		t.of[client] = l
	}
	l.users++
	t.mu.Unlock()
	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		t.forget(client, l)
		return nil, ctx.Err()
	}
	var once sync.Once
	end := func() {
		once.Do(func() {
			<-l.places
			t.forget(client, l)
		})
	}
	timer := time.AfterFunc(t.long, end)
	return func() { timer.Stop(); end() }, nil
}

func (t *turns) forget(client any, l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(t.of, client)
	}
}

// pace lets one caller pass in each interval.
type pace struct {
	every, most time.Duration

	mu   sync.Mutex // guards next
	next time.Time
}

// wait returns true when it is the caller's turn. It returns false at once if the turn is too far
// away, and when ctx ends.
func (p *pace) wait(ctx context.Context) bool {
	p.mu.Lock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	pause := p.next.Sub(now)
	if pause > p.most {
		p.mu.Unlock()
		return false
	}
	p.next = p.next.Add(p.every)
	p.mu.Unlock()
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}
