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

// This file has the IDs of requests for locks; puts.go has those of changes of data. A client whose
// connection broke does not know whether its request was granted. It makes the same call again with
// the same ID, and gets the same lock; or it gives the request up by its ID.

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
	id     string
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

// find returns the request with this ID, or nil. It fails if the ID was given up or has been used
// for a request with other terms.
func (r *requests) find(q request) (*named, error) {
	n := r.byID[q.id]
	switch {
	case slices.Contains(r.givenUp, q.id):
		return nil, errGivenUp
	case n != nil && n.sum != q.sum:
		return nil, bad("the request %q was made before with other terms: give each request an ID of its own", q.id)
	}
	return n, nil
}

// add enters a request whose call begins.
func (r *requests) add(q request, cancel context.CancelCauseFunc) *named {
	n := &named{id: q.id, sum: q.sum, cancel: cancel, done: make(chan struct{})}
	r.byID[q.id] = n
	return n
}

// end ends the call of a request. The token is zero if the request has got no lock.
func (r *requests) end(n *named, token mortise.Token) {
	if n.token = token; token != 0 {
		r.ids[token] = n.id
	} else {
		delete(r.byID, n.id)
	}
	close(n.done)
}

// forget removes the request of a lock that has ended.
func (r *requests) forget(token mortise.Token) {
	if id, named := r.ids[token]; named {
		delete(r.byID, id)
		delete(r.ids, token)
	}
}

// giveUp cancels the call of the request with this ID, and returns the request, or nil if there is
// none. It refuses later calls with the ID.
func (r *requests) giveUp(id string) *named {
	if !slices.Contains(r.givenUp, id) {
		r.givenUp = append(r.givenUp[max(len(r.givenUp)-maxGivenUp+1, 0):], id)
	}
	n := r.byID[id]
	if n != nil {
		n.cancel(errGivenUp)
	}
	return n
}
