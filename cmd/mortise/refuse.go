package main

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/mortise-lock/mortise"
)

// Errors of the API. Their codes are in refuse.
var (
	errNoLease = errors.New("there is no such lease: it was not kept alive in time, its connection has ended, " +
		"or it was ended; its locks have ended with it")
	errNoLock  = errors.New("the lease has no lock with that token: it was released, or lost")
	errTooMuch = errors.New("this client has reached its share of the agent's leases: end some, or let them expire")

	errManyRequests = errors.New("this client has reached its limit of requests: end some, or wait for their answers")
	errManyBytes    = errors.New("this client has reached its limit of bytes in the bodies of running requests")
	errNoPath       = errors.New("this agent has no such path: /v1/openapi.json lists all of them")
	errNoMethod     = errors.New("this path has no such method")

	errBadSecret   = errors.New("this derived secret is not accepted")
	errManySecrets = errors.New("this agent has reached its limit of derived secrets")
	errNoPrograms  = errors.New("this agent accepts no derived secrets: it has no -secret-file of a cluster that " +
		"could have " +
		"signed them; send the request without Authorization")
	errMemberSecret = errors.New("this derived secret was made with -member, to start an instance: " +
		"for requests to the agent use one that was made with -allow")
	errNotForPrograms = errors.New("a program with a derived secret cannot do this")
)

// refuse sends the status code for an error: 400 wrong request, 401 bad derived secret, 403 denied
// by the secret's rights, or not offered to programs, 404 no such lease, lock or path, 409 busy,
// kept, changed or in doubt, 410 lost, 503 no answer at the moment. Busy means that a holder, or a
// full queue, is known: a program that skips its work when it is busy must not do so everywhere
// when the group has no leader.
func refuse(w http.ResponseWriter, err error) {
	code, p := problemOf(err)
	say(w, code, p)
}

func problemOf(err error) (int, problem) {
	p, code := problem{Error: sentence(err.Error(), toPrograms), Kind: "failed"}, http.StatusInternalServerError
	var wait interface{ HolderKnown() bool }
	set := func(c int, kind string) { code, p.Kind = c, kind }
	switch {
	case errors.As(err, &p.Held):
		set(http.StatusConflict, "busy")
	case errors.Is(err, errBadSecret), errors.Is(err, errNoPrograms), errors.Is(err, errMemberSecret):
		set(http.StatusUnauthorized, "no token")
	case errors.Is(err, mortise.ErrNotAllowed):
		set(http.StatusForbidden, "denied")
	case errors.Is(err, errNotForPrograms):
		set(http.StatusForbidden, "not offered")
	case errors.Is(err, errNoPath):
		set(http.StatusNotFound, "no path")
	case errors.Is(err, errNoMethod):
		set(http.StatusMethodNotAllowed, "wrong")
	case errors.Is(err, mortise.ErrBadRequest), errors.Is(err, mortise.ErrBadKey):
		set(http.StatusBadRequest, "wrong")
	case errors.Is(err, errNoLease):
		set(http.StatusNotFound, "no lease")
	case errors.Is(err, errNoLock), errors.Is(err, errGivenUp):
		set(http.StatusNotFound, "no lock")
	case errors.Is(err, mortise.ErrNotHeld):
		set(http.StatusNotFound, "no lock")
	case errors.Is(err, mortise.ErrConflict):
		set(http.StatusConflict, "changed")
	case errors.Is(err, mortise.ErrKept):
		set(http.StatusConflict, "kept")
	case errors.Is(err, mortise.ErrLost):
		set(http.StatusGone, "lost")
	case errors.Is(err, mortise.ErrInJeopardy):
		set(http.StatusConflict, "in doubt")
	case errors.Is(err, mortise.ErrNotReady), errors.Is(err, mortise.ErrLeaving), errors.Is(err, mortise.ErrClosed),
		errors.Is(err, mortise.ErrOverloaded), errors.Is(err, mortise.ErrNoRoom), errors.Is(err, errTooMuch),
		errors.Is(err, errManyRequests), errors.Is(err, errManyBytes), errors.Is(err, errManySecrets):
		set(http.StatusServiceUnavailable, "not ready")
	case errors.Is(err, mortise.ErrQueueFull), errors.As(err, &wait) && wait.HolderKnown():
		set(http.StatusConflict, "busy")
	case errors.Is(err, context.DeadlineExceeded):
		set(http.StatusServiceUnavailable, "not ready")
	}
	return code, p
}

// strangers keeps the answers to requests whose secret is not accepted. There are few different
// ones, and made-up secrets cost their sender nothing. It is safe for concurrent use.
type strangers struct {
	mu  sync.Mutex // guards all
	all map[string]*rendered
}

// rendered is an answer of the API.
type rendered struct {
	code int
	text []byte
}

const maxRefusals = 32

func (s *strangers) refuse(w http.ResponseWriter, err error) {
	what := err.Error()
	s.mu.Lock()
	a := s.all[what]
	s.mu.Unlock()
	if a == nil {
		code, p := problemOf(err)
		text, err := dialect(p)
		if err != nil {
			refuse(w, err)
			return
		}
		a = &rendered{code, text}
		s.mu.Lock()
		if len(s.all) < maxRefusals {
			s.all[what] = a
		}
		s.mu.Unlock()
	}
	a.write(w)
}

func (a *rendered) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.code)
	_, _ = w.Write(a.text)
}

type problem struct {
	Error string             `json:"error"`
	Kind  string             `json:"kind"`
	Held  *mortise.HeldError `json:"held,omitempty"` // set if Kind is "busy"
}

func say(w http.ResponseWriter, code int, v any) {
	text, err := dialect(v)
	if err != nil {
		code, text = http.StatusInternalServerError, []byte("{}\n")
	}
	(&rendered{code, text}).write(w)
}

// lines returns a function that writes and flushes one line. The function reports whether the
// client is still connected.
func lines(w http.ResponseWriter) func(v any) bool {
	flush := http.NewResponseController(w)
	return func(v any) bool {
		text, err := dialect(v)
		if err == nil {
			_, err = w.Write(text)
		}
		return err == nil && flush.Flush() == nil
	}
}
