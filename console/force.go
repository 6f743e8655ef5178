package console

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/plain"
)

const (
	forceWithin = 2 * time.Second
	formBytes   = 16 << 10
)

type outcome struct {
	code  int
	Level level
	Text  string
}

func (h *handler) force(w http.ResponseWriter, r *http.Request, may bool) *outcome {
	if err := h.origin.Check(r); err != nil {
		return &outcome{http.StatusForbidden, broken, "Nothing was done: the form was sent by a page of another site."}
	}
	if !may {
		return &outcome{http.StatusForbidden, broken, "Nothing was done: you may not end a hold."}
	}
	r.Body = http.MaxBytesReader(w, r.Body, formBytes)
	if err := r.ParseForm(); err != nil {
		return &outcome{http.StatusBadRequest, broken, "Nothing was done: the form could not be read."}
	}
	key, reason := r.PostForm.Get("key"), strings.TrimSpace(r.PostForm.Get("reason"))
	token, err := strconv.ParseUint(r.PostForm.Get("token"), 10, 64)
	switch {
	case err != nil || token == 0 || key == "":
		return &outcome{http.StatusBadRequest, broken,
			"Nothing was done: the form names no key, or no token of a hold."}
	case reason == "":
		return &outcome{http.StatusBadRequest, broken,
			"Nothing was done: give a reason. The holder's error and the leader's log contain it."}
	}
	if !plain.Is(reason) {
		return &outcome{http.StatusBadRequest, broken, "Nothing was done: the reason " + plain.NotText + "."}
	}
	// ForceUnlock continues if the client disconnects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), forceWithin)
	defer cancel()
	ended, err := h.node.ForceUnlock(ctx, key, mortise.Token(token), reason)
	h.answers.forget()
	hold := plain.Text(key) + " with token " + strconv.FormatUint(token, 10)
	switch {
	case err != nil:
		return &outcome{http.StatusServiceUnavailable, broken, "It is not known whether the hold of " + hold +
			" has ended: " + err.Error() + ". Send the form again: it can end only that hold, and only once."}
	case !ended:
		return &outcome{http.StatusOK, watch, "Nothing was done: the hold of " + hold + " had ended before."}
	}
	return &outcome{http.StatusOK, fine, "The hold of " + hold +
		" has ended. Its holder is told. Until it knows, only the token protects the resource."}
}
