package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

// readyWithin is the time limit of a readiness probe. An orchestrator usually waits a second, so
// the response arrives in time and can contain the reason.
const readyWithin = 500 * time.Millisecond

// serveLive reports whether the node has ended, so that a restart of the process would help. It
// sends no query to the group.
func (h *handler) serveLive(w http.ResponseWriter, r *http.Request) {
	if err := h.node.Err(); err != nil {
		h.probe(w, r, http.StatusServiceUnavailable, "the node has ended", err.Error())
		return
	}
	h.probe(w, r, http.StatusOK, "alive", "")
}

func (h *handler) serveReady(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	if err := h.node.Ready(ctx); err != nil {
		h.probe(w, r, http.StatusServiceUnavailable, "not ready", waitsFor(h.node.Status(), err))
		return
	}
	h.probe(w, r, http.StatusOK, "ready", "")
}

// waitsFor returns what a node that is not ready waits for: Status.Waiting, which includes the
// remedy, or the error if Status.Waiting is empty.
func waitsFor(s mortise.Status, err error) string {
	if s.Err == nil && s.Waiting != "" {
		return s.Waiting
	}
	return err.Error()
}

// probe answers requests with any Host header, because a prober that uses a name would take a
// rejection for a failed instance. But it sends the reason, which may contain names and addresses
// of instances, only if the Host header is accepted.
func (h *handler) probe(w http.ResponseWriter, r *http.Request, code int, text, why string) {
	if why != "" && h.named(r) {
		text += ": " + why
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprintln(w, shown(strings.ReplaceAll(text, "\n", "; "))) // net/http sends no body for HEAD
}
