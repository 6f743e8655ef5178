package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/plain"
)

// This file has the IDs of requests for locks. A client whose connection broke does not know
// whether its request was granted. It makes the same call again with the same ID, and gets the same
// lock; or it gives the request up by its ID.

const (
	maxRequestID = 64
	maxGivenUp   = 64 // IDs that a lease remembers
)

var errGivenUp = errors.New("the client has given up this request by its ID")

type requestKey struct{}

// request is the ID that a client has given to a request, with a hash of the terms. Without an ID
// it is zero.
type request struct {
	id  string
	sum [sha256.Size]byte
}

// named is a request with an ID. It exists while its call runs, and then as long as its lock.
type named struct {
	sum    [sha256.Size]byte
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the call has ended
	token  mortise.Token // of the lock; zero until the call has ended
}

// requests are the requests of a lease that have an ID. They are guarded by mu of leases.
type requests struct {
	byID    map[string]*named
	ids     map[mortise.Token]string // of the requests that have a lock
	givenUp []string                 // the latest IDs; a call with one may still be on its way
}

// withRequest returns the context of a request for a lock, with its ID.
func withRequest(r *http.Request, a asked) (context.Context, error) {
	id := a.Request
	if id == "" {
		return r.Context(), nil
	}
	if len(id) > maxRequestID || !plain.Is(id) {
		return nil, bad("request %q has more than %d bytes, or %s", id, maxRequestID, plain.NotText)
	}
	a.Wait = nil // the client may wait longer, or less long
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	q := request{id, sha256.Sum256(append(text, r.URL.Path...))}
	return context.WithValue(r.Context(), requestKey{}, q), nil
}

func requestOf(ctx context.Context) request {
	q, _ := ctx.Value(requestKey{}).(request)
	return q
}

// begin returns the lock that a lease has by an earlier call with the same ID. While that call
// runs, begin waits for it. Otherwise the caller acquires the lock, and calls end with it, or with
// nil.
func (ls *leases) begin(ctx context.Context, l *lease, q request, cancel context.CancelCauseFunc) (
	granted holding, end func(holding), err error) {
	for {
		granted, before, err := ls.granted(l, q)
		if granted != nil || err != nil {
			return granted, nil, err
		}
		if before == nil {
			if end = ls.name(l, q, cancel); end != nil {
				return nil, end, nil
			}
			continue
		}
		select {
		case <-before:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// granted returns the lock of the request with this ID, or the channel that is closed when its call
// ends, or neither if there is no such request.
func (ls *leases) granted(l *lease, q request) (lock holding, done <-chan struct{}, err error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	n := l.requests.byID[q.id]
	switch {
	case slices.Contains(l.requests.givenUp, q.id):
		return nil, nil, errGivenUp
	case n == nil:
		return nil, nil, nil
	case n.sum != q.sum:
		return nil, nil, bad("the request %q was made before with other terms: give each request an ID of its own", q.id)
	case n.token == 0:
		return nil, n.done, nil
	}
	lock = l.locks[n.token]
	if err := lock.Err(); err != nil && !errors.Is(err, mortise.ErrInJeopardy) {
		l.forget(n.token) // the client has never known of it, and asks for another one
		return nil, nil, nil
	}
	return lock, nil, nil
}

// name enters a request, and returns the function that ends its call. It returns nil if another
// call has entered the ID meanwhile.
func (ls *leases) name(l *lease, q request, cancel context.CancelCauseFunc) func(holding) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.requests.byID[q.id] != nil {
		return nil
	}
	n := &named{sum: q.sum, cancel: cancel, done: make(chan struct{})}
	l.requests.byID[q.id] = n
	return func(lock holding) {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		if lock != nil && l.locks[lock.Token()] != nil {
			n.token = lock.Token()
			l.requests.ids[n.token] = q.id
		} else {
			delete(l.requests.byID, q.id)
		}
		close(n.done)
	}
}

// forget removes a lock of the lease, with the request that it was granted for. The caller must
// hold mu of leases.
func (l *lease) forget(token mortise.Token) {
	delete(l.locks, token)
	if id, named := l.requests.ids[token]; named {
		delete(l.requests.byID, id)
		delete(l.requests.ids, token)
	}
}

// giveUp ends the request with an ID: it cancels the call if it runs, and returns the token of the
// lock that the request has got. If it has got none, giveUp returns zero.
func (ls *leases) giveUp(ctx context.Context, by *program, lease, id string) (mortise.Token, error) {
	l, err := ls.find(by, lease)
	if err != nil {
		return 0, err
	}
	ls.mu.Lock()
	n, r := l.requests.byID[id], &l.requests
	if !slices.Contains(r.givenUp, id) {
		r.givenUp = append(r.givenUp[max(len(r.givenUp)-maxGivenUp+1, 0):], id)
	}
	ls.mu.Unlock()
	if n == nil {
		return 0, nil
	}
	n.cancel(errGivenUp)
	select {
	case <-n.done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return n.token, nil
}
