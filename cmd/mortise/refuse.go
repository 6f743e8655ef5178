package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/mortise-lock/mortise"
)

// refuse sends the status code for an error: 400 wrong request, 401 bad derived secret, 403 denied
// by the secret's rights, 404 no such lease or lock, 409 busy or kept, 410 lost, 503 no answer at
// the moment.
func refuse(w http.ResponseWriter, err error) {
	p, code := problem{Error: err.Error(), Kind: "failed"}, http.StatusInternalServerError
	set := func(c int, kind string) { code, p.Kind = c, kind }
	switch {
	case errors.As(err, &p.Held):
		set(http.StatusConflict, "busy")
	case errors.Is(err, errBadSecret):
		set(http.StatusUnauthorized, "no token")
	case errors.Is(err, mortise.ErrNotAllowed), errors.Is(err, errNotForPrograms), errors.Is(err, errNoPrograms),
		errors.Is(err, errMemberSecret):
		set(http.StatusForbidden, "denied")
	case errors.Is(err, mortise.ErrBadRequest), errors.Is(err, mortise.ErrBadKey):
		set(http.StatusBadRequest, "wrong")
	case errors.Is(err, errNoLease):
		set(http.StatusNotFound, "no lease")
	case errors.Is(err, errNoLock):
		set(http.StatusNotFound, "no lock")
	case errors.Is(err, mortise.ErrKept):
		set(http.StatusConflict, "kept")
	case errors.Is(err, mortise.ErrLost):
		set(http.StatusGone, "lost")
	case errors.Is(err, mortise.ErrNotReady), errors.Is(err, mortise.ErrLeaving), errors.Is(err, mortise.ErrClosed),
		errors.Is(err, mortise.ErrOverloaded), errors.Is(err, mortise.ErrNoRoom), errors.Is(err, errTooMany),
		errors.Is(err, errTooMuch),
		errors.Is(err, errManySecrets):
		set(http.StatusServiceUnavailable, "not ready")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, mortise.ErrQueueFull):
		set(http.StatusConflict, "busy")
	}
	say(w, code, p)
}
