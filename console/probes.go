package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/plain"
)

// readyWithin is the time limit of a readiness probe. Orchestrators usually wait a second for the
// response.
const readyWithin = 500 * time.Millisecond

// serveLive reports whether the node has ended. It sends no query to the group.
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
	fmt.Fprintln(w, plain.Text(strings.ReplaceAll(text, "\n", "; "))) // net/http sends no body for HEAD
}
